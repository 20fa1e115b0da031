#![allow(unused_variables)]

use superstep::Context;
use superstep_agent::tool;

/// How warm it is in a city.
#[tool]
async fn weather(city: &str, days: &[u8], height: &u32, #[inject] cx: &Context) -> String {
    format!("21 degrees in {city}")
}

fn main() {}
