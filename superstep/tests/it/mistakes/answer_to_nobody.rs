use superstep::{AgentState, BoxError, Context, Interrupted, Resume, START, StateGraph};

async fn ask(_: AgentState, cx: Context) -> Result<(), Interrupted> {
    let _yes: bool = cx.interrupt("go on?")?;
    Ok(())
}

pub(super) async fn main() -> Result<(), BoxError> {
    let app = StateGraph::<AgentState>::new().add_node("ask", ask).add_edge(START, "ask").compile()?;
    app.invoke(()).await?;
    app.invoke(Resume::value(true)).await?;
    Ok(())
}
