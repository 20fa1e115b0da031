use superstep::{AgentState, BoxError, Runtime, START, StateGraph};

struct Deps {
    model: &'static str,
}

async fn ask(_: AgentState, deps: Runtime<Deps>) {
    println!("asking {}", deps.model);
}

pub(super) async fn main() -> Result<(), BoxError> {
    let app = StateGraph::<AgentState>::new().add_node("ask", ask).add_edge(START, "ask").compile()?;
    app.invoke(()).await?;
    Ok(())
}
