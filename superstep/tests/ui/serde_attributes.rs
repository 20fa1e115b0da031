use serde::{Deserialize, Serialize};
use superstep::State;

#[derive(State, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chat {
    #[serde(skip)]
    secret: String,
    #[serde(rename = "kind")]
    sort: String,
    #[serde(default, with = "my_form")]
    when: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, String>,
}

mod my_form {
    pub fn serialize<S: serde::Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(*value)
    }
    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        serde::Deserialize::deserialize(from)
    }
}

fn main() {}
