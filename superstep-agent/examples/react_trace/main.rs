//! Plays a scripted conversation and prints what came of it, in the form of `tests/react/oracle.py`.

mod player;

fn main() -> Result<(), superstep::BoxError> {
    let path = std::env::args().nth(1).ok_or("usage: react_trace SCENARIO.json")?;
    let scenario = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{:#}", runtime.block_on(player::play(scenario))?);
    Ok(())
}
