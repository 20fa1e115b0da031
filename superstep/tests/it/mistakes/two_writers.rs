use serde::{Deserialize, Serialize};
use superstep::{BoxError, START, State, StateGraph};

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Search {
    found: String,
}

pub(super) async fn main() -> Result<(), BoxError> {
    let app = StateGraph::<Search>::new()
        .add_node("web", |_: &Search| Search::update().found("a page"))
        .add_node("books", |_: &Search| Search::update().found("a book"))
        .add_edge(START, "web")
        .add_edge(START, "books")
        .compile()?;
    app.invoke(()).await?;
    Ok(())
}
