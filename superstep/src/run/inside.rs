//! Graphs called by nodes, as parts of their runs.

use super::{IntoInput, Output};
use crate::call::{Context, Interrupted, Why};
use crate::error::BoxError;
use crate::graph::{CompiledStateGraph, Inside};
use crate::state::{Codec, Persist};
use crate::view::RunEnd;

impl Context {
    /// Runs a graph inside this node, as part of this run: it shares the thread, streams with it,
    /// can ask and be resumed, and is cancelled with it.
    ///
    /// ```
    /// use superstep::{AgentState, BoxError, CompiledStateGraph, Context, Message, Update};
    ///
    /// async fn ask_expert(state: AgentState, cx: Context, /* .. */) -> Result<Update<AgentState>, BoxError> {
    /// #   let expert: CompiledStateGraph<AgentState> = unimplemented!();
    ///     let out = cx.invoke(&expert, state).await?;
    ///     Ok(Update::new().set(AgentState::MESSAGES, out.state.messages))
    /// }
    /// ```
    ///
    /// # Errors
    /// The graph's own error; or, if it asked a question, an error to pass on with `?`.
    pub async fn invoke<C: Persist, M>(
        &self,
        graph: &CompiledStateGraph<C>,
        input: impl IntoInput<C, M>,
    ) -> Result<Output<C>, BoxError> {
        let graph = graph.clone().with_codec(Codec::of());
        match graph.run_inside(input.into_input().of(&graph.core), self).await? {
            Inside::Done(run) => {
                let (state, shown) = run.finish()?;
                Ok(Output::new(RunEnd { state, shown, paused: false, interrupts: Vec::new() }))
            }
            Inside::Waits => Err(Box::new(Interrupted { why: Why::Asked })),
        }
    }
}
