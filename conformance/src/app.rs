//! What a script talks to: a graph or a workflow made of functions, behind one set of calls.

use std::sync::Arc;

use serde_json::Value;
use superstep::{
    CompiledEntrypoint, CompiledStateGraph, GoOn, IntoUpdate, Invoke, JsonState, Persist, Returned, Streaming,
    Superstep, Update,
};

use crate::failure::Failure;
use crate::world::{App, World};
use crate::{build, functional};

pub(crate) trait Runnable: Sized {
    type State: Persist;

    fn build(world: &Arc<World>) -> Result<Self, Failure>;

    fn graph(&self) -> &CompiledStateGraph<Self::State>;

    /// Runs it on an input; null goes on with what is left to do.
    fn invoke(&self, input: Value) -> Invoke<Self::State>;

    fn stream(&self, input: Value) -> Streaming<Self::State>;

    /// A value that is put in as input, and not run.
    fn input(values: Value) -> Result<Superstep<Self::State>, Failure>;

    /// What a value writes to the state; the caller has seen that it is an object or null.
    fn writes(values: Value) -> Update<Self::State>;
}

/// A value as an update, which must be an object or null.
pub(crate) fn update_of<R: Runnable>(values: Value) -> Result<Update<R::State>, Failure> {
    match values {
        Value::Null => Ok(Update::new()),
        values @ Value::Object(_) => Ok(R::writes(values)),
        _ => Err(Failure::Named("invalid_update")),
    }
}

impl Runnable for App {
    type State = JsonState;

    fn build(world: &Arc<World>) -> Result<Self, Failure> {
        Ok(build::root(world, world.scenario.graph.as_ref().ok_or(Failure::INVALID)?)?)
    }

    fn graph(&self) -> &CompiledStateGraph<JsonState> {
        self
    }

    fn invoke(&self, input: Value) -> Invoke<JsonState> {
        if input.is_null() { CompiledStateGraph::invoke(self, GoOn) } else { CompiledStateGraph::invoke(self, input) }
    }

    fn stream(&self, input: Value) -> Streaming<JsonState> {
        if input.is_null() { CompiledStateGraph::stream(self, GoOn) } else { CompiledStateGraph::stream(self, input) }
    }

    fn input(values: Value) -> Result<Superstep<JsonState>, Failure> {
        Ok(Superstep::input(update_of::<Self>(values)?))
    }

    fn writes(values: Value) -> Update<JsonState> {
        values.into_update()
    }
}

impl Runnable for CompiledEntrypoint<Value> {
    type State = Returned;

    fn build(world: &Arc<World>) -> Result<Self, Failure> {
        Ok(functional::workflow(world, world.scenario.functional.as_ref().ok_or(Failure::INVALID)?))
    }

    fn graph(&self) -> &CompiledStateGraph<Returned> {
        CompiledEntrypoint::graph(self)
    }

    fn invoke(&self, input: Value) -> Invoke<Returned> {
        CompiledEntrypoint::invoke(self, input)
    }

    fn stream(&self, input: Value) -> Streaming<Returned> {
        CompiledEntrypoint::stream(self, input)
    }

    fn input(values: Value) -> Result<Superstep<Returned>, Failure> {
        Ok(Superstep::input(values))
    }

    fn writes(values: Value) -> Update<Returned> {
        Update::from_writes([(0, values.clone()), (1, values)])
    }
}
