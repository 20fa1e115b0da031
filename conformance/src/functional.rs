//! From the functions of a scenario to superstep's entrypoint and tasks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use superstep::{BoxError, CompiledEntrypoint, Context, Entrypoint, Final, Task};

use crate::build;
use crate::expr::Env;
use crate::program::{self, Wishes};
use crate::scenario::{self, Functional, Program};
use crate::world::World;

/// The workflow that the script is about.
pub(crate) fn workflow(world: &Arc<World>, functions: &Functional) -> CompiledEntrypoint<Value> {
    for (name, given) in functions.tasks.iter() {
        world.add_task(name, task(world, name, given));
    }
    let (inner, program) = (world.clone(), functions.entrypoint.clone());
    let run = move |input: Value, cx: Context| {
        let (world, program) = (inner.clone(), program.clone());
        async move {
            let (value, save) = call(&world, &program, input, cx, "entrypoint").await?;
            Ok::<_, BoxError>(Final { value, save })
        }
    };
    let entrypoint = Entrypoint::new("workflow", run).store(world.store.clone()).cache(world.cache.clone());
    match world.saver() {
        Some(saver) => entrypoint.checkpointer(saver).compile(),
        None => entrypoint.compile(),
    }
}

fn task(world: &Arc<World>, name: &str, given: &scenario::Task) -> Task<Value, Value> {
    let (world, program, place) = (world.clone(), given.program.clone(), Arc::<str>::from(format!("task:{name}")));
    let run = move |input: Value, cx: Context| {
        let (world, program, place) = (world.clone(), program.clone(), place.clone());
        async move { call(&world, &program, input, cx, &place).await.map(|(value, _)| value) }
    };
    let mut task = Task::new(name, run);
    if let Some(policy) = &given.retry {
        task = task.retry(build::retry(policy));
    }
    if let Some(policy) = &given.cache {
        task = task.cached(policy.ttl.map(Duration::from_secs_f64));
    }
    task
}

/// Runs a program as a function; gives what it returns and what it keeps.
async fn call(
    world: &Arc<World>,
    program: &Program,
    input: Value,
    cx: Context,
    place: &str,
) -> Result<(Value, Value), BoxError> {
    let (mut env, mut wishes) = (Env::new(world, input, Some(cx)), Wishes::default());
    program::run(program, &mut env, &mut wishes, place).await?;
    Ok(wishes.into_returned())
}
