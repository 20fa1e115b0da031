use serde::{Deserialize, Serialize};
use superstep::{BoxError, END, START, State, StateGraph};

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Draft {
    #[state(append)]
    lines: Vec<String>,
}

pub(super) async fn main() -> Result<(), BoxError> {
    let enough = |draft: &Draft| if draft.lines.len() == 3 { END } else { "write" };
    let app = StateGraph::<Draft>::new()
        .add_node("write", |_: &Draft| Draft::update().lines(["one", "two"]))
        .add_edge(START, "write")
        .add_conditional_edges("write", enough)
        .compile()?;
    app.invoke(()).await?;
    Ok(())
}
