//! The calls of a script, in order, and the record of each.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use superstep::{
    CheckpointId, CheckpointRef, Checkpointer, Command, CompiledEntrypoint, CompiledStateGraph, Durability, Filter,
    GoOn, Goto, Invoke, JsonState, ListQuery, Mode, NamespaceQuery, Output, Persist, Resume, SearchQuery, Source,
    State, StateSnapshot, Store, Streaming, Superstep, TaskSnapshot, Thread, Update,
};
use superstep_sqlite::DatabaseError;

use crate::app::{Runnable, update_of};
use crate::expr::{Env, RunContext, equal};
use crate::failure::{Failure, WrongValue};
use crate::program::namespace;
use crate::saver::Kind;
use crate::scenario::{Scenario, node_name};
use crate::trace::{Labels, MODES, Renderer, plain, questions};
use crate::world::{App, World};

/// Runs a scenario and gives its trace.
pub(crate) async fn run(scenario: Scenario, kind: Kind) -> Result<Value, DatabaseError> {
    let world = World::new(scenario, kind).await?;
    let trace = if world.scenario.functional.is_some() {
        play::<CompiledEntrypoint<Value>>(world.clone()).await
    } else {
        play::<App>(world.clone()).await
    };
    world.end().await?;
    Ok(trace)
}

async fn play<R: Runnable>(world: Arc<World>) -> Value {
    let name = &world.scenario.name;
    let app = match R::build(&world) {
        Ok(app) => app,
        Err(failure) => return json!({ "name": name, "compile_error": failure.to_json()["kind"] }),
    };
    let mut stage = Stage { world: world.clone(), app };
    let mut steps = Vec::new();
    for step in &world.scenario.script {
        let record = stage.step(step).await;
        steps.push(record.unwrap_or_else(|failure| json!({ "error": failure.to_json() })));
    }
    json!({ "name": name, "steps": steps })
}

type Record = Result<Value, Failure>;

/// A world with the graph that its script is about.
struct Stage<R> {
    world: Arc<World>,
    app: R,
}

/// What a call is about: a thread, or a subgraph of it.
enum Place<S: State> {
    Thread { thread: Thread<S>, checkpoint: Option<CheckpointId> },
    Subgraph { thread: Thread<JsonState>, at: Option<CheckpointRef> },
}

impl<R: Runnable> Stage<R> {
    async fn step(&mut self, step: &Value) -> Record {
        match step["op"].as_str().unwrap_or_default() {
            "restart" => {
                self.world.restart().await.map_err(superstep::CheckpointError::from)?;
                self.app = R::build(&self.world)?;
                Ok(json!({}))
            }
            "counters" => Ok(json!({ "counters": self.world.counters() })),
            "sleep" => {
                tokio::time::sleep(Duration::from_secs_f64(step["ms"].as_f64().unwrap_or_default() / 1000.0)).await;
                Ok(json!({}))
            }
            "graph" => Ok(drawing(self.app.graph(), &step["xray"])),
            "store_search" => store_search(&self.world, step).await,
            "store_namespaces" => store_namespaces(&self.world, step).await,
            "delete_thread" => self.delete_thread(step).await,
            "state" => self.state(step).await,
            "history" => self.history(step).await,
            "update" => self.update(step).await,
            "bulk_update" => self.bulk_update(step, list(&step["supersteps"])).await,
            "invoke" => self.invoke(step).await,
            "stream" => self.stream(step).await,
            _ => Err(Failure::INVALID),
        }
    }

    // ---- finding places ----

    async fn labels(&self, step: &Value) -> Result<Labels, Failure> {
        match step["thread"].as_str() {
            Some(thread) => Labels::of(self.world.saver().as_deref(), thread).await,
            None => Ok(Labels::default()),
        }
    }

    async fn renderer(&self, step: &Value) -> Result<Renderer<'_>, Failure> {
        Ok(Renderer { world: &self.world, labels: self.labels(step).await? })
    }

    async fn place(&self, step: &Value) -> Result<Place<R::State>, Failure> {
        let labels = self.labels(step).await?;
        let mut thread = self.app.graph().thread(step["thread"].as_str().unwrap_or_default());
        let mut checkpoint = None;
        if let Some(label) = step["checkpoint"].as_str() {
            let id = labels.find("", label).ok_or(Failure::INVALID)?;
            (thread, checkpoint) = (thread.at(id), Some(id));
        }
        let Some(path) = step["path"].as_array() else { return Ok(Place::Thread { thread, checkpoint }) };
        let snapshot = thread.state_with_subgraphs().await?;
        let task = follow(&snapshot.tasks, path).ok_or(Failure::INVALID)?;
        let inner = task.subgraph.as_ref().ok_or(Failure::INVALID)?;
        let thread = thread.subgraph::<JsonState>(task.namespace.as_deref().unwrap_or_default())?;
        let mut at = inner.checkpoint.clone();
        if let Some(label) = step["inner_checkpoint"].as_str() {
            let at = at.as_mut().ok_or(Failure::INVALID)?;
            at.id = labels.find(&at.namespace, label).ok_or(Failure::INVALID)?;
        } else if step["op"] == "history" {
            // The history of the whole subgraph, not of one checkpoint.
            at = None;
        }
        let thread = at.as_ref().map_or_else(|| thread.clone(), |at| thread.at(at.id));
        Ok(Place::Subgraph { thread, at })
    }

    /// The place that a call about a saved state is about.
    async fn saved_place(&self, step: &Value) -> Result<Place<R::State>, Failure> {
        match step["thread"] {
            Value::Null => Err(Failure::INVALID),
            _ => self.place(step).await,
        }
    }

    // ---- states ----

    async fn delete_thread(&self, step: &Value) -> Record {
        let saver = self.world.saver().ok_or(Failure::Named("AttributeError"))?;
        saver.delete_thread(step["thread"].as_str().unwrap_or_default()).await?;
        Ok(json!({}))
    }

    async fn state(&self, step: &Value) -> Record {
        let deep = step["subgraphs"] == true;
        let place = self.saved_place(step).await?;
        let renderer = self.renderer(step).await?;
        let state = match &place {
            Place::Thread { thread, .. } => renderer.snapshot(&look(thread, deep).await?),
            Place::Subgraph { thread, .. } => renderer.snapshot(&look(thread, deep).await?),
        };
        Ok(json!({ "state": state }))
    }

    async fn history(&self, step: &Value) -> Record {
        let query = query_of(step)?;
        let place = self.saved_place(step).await?;
        let renderer = self.renderer(step).await?;
        let history: Vec<Value> = match &place {
            Place::Thread { thread, .. } => {
                thread.history_with(query).await?.iter().map(|s| renderer.snapshot(s)).collect()
            }
            Place::Subgraph { thread, .. } => {
                thread.history_with(query).await?.iter().map(|s| renderer.snapshot(s)).collect()
            }
        };
        Ok(json!({ "history": history }))
    }

    /// A value of the script, outside of any node.
    fn eval(&self, expression: &Value) -> Result<Value, WrongValue> {
        Env::new(&self.world, json!({}), None).eval(expression)
    }

    async fn update(&self, step: &Value) -> Record {
        self.bulk_update(step, std::slice::from_ref(&json!([step]))).await
    }

    async fn bulk_update(&self, step: &Value, supersteps: &[Value]) -> Record {
        let at = match &self.saved_place(step).await? {
            Place::Thread { thread, .. } => thread.bulk_update(self.supersteps::<R>(supersteps)?).await?,
            Place::Subgraph { thread, .. } => thread.bulk_update(self.supersteps::<App>(supersteps)?).await?,
        };
        Ok(json!({ "checkpoint": self.labels(step).await?.label(Some(&at)) }))
    }

    fn supersteps<T: Runnable>(&self, supersteps: &[Value]) -> Result<Vec<Superstep<T::State>>, Failure> {
        let one = |update: &Value| {
            let values = if update.get("values").is_some() { self.eval(&update["values"])? } else { Value::Null };
            Ok((values, update["as_node"].as_str().map(node_name)))
        };
        let updates = |group: &Value| list(group).iter().map(one).collect::<Result<Vec<_>, Failure>>();
        supersteps.iter().map(|group| superstep::<T>(updates(group)?)).collect()
    }

    // ---- runs ----

    async fn invoke(&self, step: &Value) -> Record {
        let options = self.options(step).await?;
        let run = match self.command(step).await? {
            Some(command) => self.app.graph().invoke(command),
            None => self.app.invoke(self.eval(&step["input"])?),
        };
        Ok(result(&run.configured(options).await?))
    }

    async fn stream(&self, step: &Value) -> Record {
        let options = self.options(step).await?;
        let run = match self.command(step).await? {
            Some(command) => self.app.graph().stream(command),
            None => self.app.stream(self.eval(&step["input"])?),
        };
        // Subgraphs are always shown to us, so that what is seen there counts as seen.
        let mut stream = run.configured(options).modes(modes(step)?).subgraphs().start();
        let (mut events, mut error) = (Vec::new(), None);
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) if step["subgraphs"] == true || event.namespace.is_empty() => events.push(event),
                Ok(_) => {}
                Err(failure) => error = Some(Failure::from(failure).to_json()),
            }
        }
        let renderer = self.renderer(step).await?;
        let events: Vec<Value> = events.iter().map(|event| renderer.event(event)).collect();
        Ok(match error {
            Some(error) => json!({ "events": events, "error": error }),
            None => json!({ "events": events }),
        })
    }

    async fn options(&self, step: &Value) -> Result<Options, Failure> {
        let mut options = Options::of(step)?;
        if options.thread.is_some() {
            match self.place(step).await? {
                Place::Thread { checkpoint, .. } => options.checkpoint = checkpoint,
                Place::Subgraph { at, .. } => options.at = Some(at.ok_or(Failure::INVALID)?),
            }
        }
        Ok(options)
    }

    /// The command of a call, if it has one.
    async fn command(&self, step: &Value) -> Result<Option<Command<R::State>>, Failure> {
        let Some(given) = step["command"].as_object() else { return Ok(None) };
        let mut command = Command::new();
        match given.get("resume_by_value") {
            Some(answers) => command = command.resume(self.answers(step, list(answers)).await?),
            None => {
                if let Some(answer) = given.get("resume").filter(|answer| !answer.is_null()) {
                    command = command.resume(Resume::value(answer));
                }
            }
        }
        if let Some(update) = given.get("update") {
            command = command.update(update_of::<R>(update.clone())?);
        }
        if let Some(goto) = given.get("goto") {
            let names = goto.as_array().map_or(std::slice::from_ref(goto), Vec::as_slice);
            command = command.goto_all(names.iter().filter_map(Value::as_str).map(|n| Goto::from(node_name(n))));
        }
        Ok(Some(command))
    }

    /// Answers to questions that are named by their values.
    async fn answers(&self, step: &Value, wanted: &[Value]) -> Result<Resume, Failure> {
        let open = match self.saved_place(step).await? {
            Place::Thread { thread, .. } => thread.state_with_subgraphs().await?.interrupts,
            Place::Subgraph { thread, .. } => thread.state_with_subgraphs().await?.interrupts,
        };
        let answers = wanted.iter().flat_map(|pair| {
            let asked = open.iter().filter(|i| equal(&i.value, &pair[0]));
            asked.map(|i| (i.id.clone(), pair[1].clone()))
        });
        Ok(Resume::by_id(answers))
    }
}

type NodeUpdates<S> = Vec<(Update<S>, String)>;

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

fn names(value: &Value) -> Vec<String> {
    let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    listed.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The task that names of tasks lead to, through the graphs inside; `w#2` is the second task named `w`.
fn follow<'a>(tasks: &'a [TaskSnapshot], path: &[Value]) -> Option<&'a TaskSnapshot> {
    let (first, rest) = path.split_first()?;
    let (name, nth) = first.as_str()?.split_once('#').unwrap_or((first.as_str()?, "1"));
    let mut same = tasks.iter().filter(|task| task.name == name);
    let task = same.nth(nth.parse::<usize>().ok()?.checked_sub(1)?)?;
    if rest.is_empty() { Some(task) } else { follow(&task.subgraph.as_ref()?.tasks, rest) }
}

async fn look<S: State>(thread: &Thread<S>, deep: bool) -> Result<StateSnapshot<S>, superstep::Error> {
    if deep { thread.state_with_subgraphs().await } else { thread.state().await }
}

fn query_of(step: &Value) -> Result<ListQuery, Failure> {
    let mut query = ListQuery::new();
    if let Some(limit) = step["limit"].as_u64() {
        query = query.limit(limit as usize);
    }
    for (key, value) in step["filter"].as_object().into_iter().flatten() {
        query = match key.as_str() {
            "source" => query.source(source_named(value)?),
            "step" => query.step(value.as_i64().ok_or(Failure::INVALID)?),
            _ => query.metadata(key, value.clone()),
        };
    }
    Ok(query)
}

fn source_named(name: &Value) -> Result<Source, Failure> {
    serde_json::from_value(name.clone()).map_err(|_| Failure::INVALID)
}

/// Changes of a thread as nodes, or one in one of the ways that have a name of their own.
fn superstep<R: Runnable>(mut updates: Vec<(Value, Option<String>)>) -> Result<Superstep<R::State>, Failure> {
    if let [(values, as_node)] = updates.as_mut_slice() {
        let values = values.take();
        return Ok(match as_node.take().as_deref() {
            Some(superstep::END) if values.is_null() => Superstep::clear_tasks(),
            Some("__input__") if values.is_null() => Superstep::input(GoOn),
            Some("__input__") => R::input(values)?,
            Some("__copy__") => Superstep::copy_with(copied::<R>(&values)?),
            Some(node) => Superstep::updates([(update_of::<R>(values)?, node)]),
            None => Superstep::update(update_of::<R>(values)?),
        });
    }
    // Which node several updates are from must be said; superstep's types do not let it be left out.
    let one = |(values, as_node): (Value, Option<String>)| {
        Ok((update_of::<R>(values)?, as_node.ok_or(Failure::Named("invalid_update"))?))
    };
    Ok(Superstep::updates(updates.into_iter().map(one).collect::<Result<Vec<_>, Failure>>()?))
}

/// The updates that go into a copy.
fn copied<R: Runnable>(values: &Value) -> Result<NodeUpdates<R::State>, Failure> {
    let one =
        |pair: &Value| Ok((update_of::<R>(pair[0].clone())?, pair[1].as_str().ok_or(Failure::INVALID)?.to_owned()));
    list(values).iter().map(one).collect()
}

fn result<S: Persist>(output: &Output<S>) -> Value {
    let shown = plain(&output.to_json());
    if !output.is_interrupted() {
        return json!({ "result": shown });
    }
    let shown = if shown.is_object() { shown } else { Value::Object(Map::new()) };
    json!({ "result": shown, "interrupts": questions(&output.interrupts) })
}

fn modes(step: &Value) -> Result<Vec<Mode>, Failure> {
    let mode = |name: &String| MODES.iter().find(|(n, _)| n == name).map(|(_, mode)| *mode).ok_or(Failure::INVALID);
    names(&step["modes"]).iter().map(mode).collect()
}

// ---- options of runs ----

/// What a call says about its run.
struct Options {
    thread: Option<String>,
    checkpoint: Option<CheckpointId>,
    at: Option<CheckpointRef>,
    recursion_limit: Option<usize>,
    durability: Option<Durability>,
    interrupt_before: Option<Vec<String>>,
    interrupt_after: Option<Vec<String>>,
    output_keys: Option<Vec<String>>,
    context: Option<Value>,
}

impl Options {
    fn of(step: &Value) -> Result<Self, Failure> {
        let list_of = |key: &str| step.get(key).filter(|v| !v.is_null()).map(names);
        Ok(Self {
            thread: step["thread"].as_str().map(str::to_owned),
            checkpoint: None,
            at: None,
            recursion_limit: step["recursion_limit"].as_i64().map(|limit| limit.max(0) as usize),
            durability: step["durability"].as_str().map(durability).transpose()?,
            interrupt_before: list_of("interrupt_before"),
            interrupt_after: list_of("interrupt_after"),
            output_keys: list_of("output_keys"),
            context: step.get("context").cloned(),
        })
    }
}

fn durability(name: &str) -> Result<Durability, Failure> {
    match name {
        "sync" => Ok(Durability::Sync),
        "async" => Ok(Durability::Async),
        "exit" => Ok(Durability::Exit),
        _ => Err(Failure::INVALID),
    }
}

/// The two kinds of run, which take the same options.
trait Configure: Sized {
    fn configured(self, options: Options) -> Self;
}

macro_rules! configure {
    ($($run:ident),*) => {$(
        impl<S: State> Configure for $run<S> {
            fn configured(mut self, options: Options) -> Self {
                if let Some(thread) = options.thread {
                    self = self.thread(thread);
                }
                if let Some(checkpoint) = options.checkpoint {
                    self = self.checkpoint(checkpoint);
                }
                if let Some(at) = options.at {
                    self = self.at(&at);
                }
                if let Some(limit) = options.recursion_limit {
                    self = self.recursion_limit(limit);
                }
                if let Some(durability) = options.durability {
                    self = self.durability(durability);
                }
                if let Some(nodes) = options.interrupt_before {
                    self = self.interrupt_before(nodes);
                }
                if let Some(nodes) = options.interrupt_after {
                    self = self.interrupt_after(nodes);
                }
                if let Some(fields) = options.output_keys {
                    self = self.output_keys(fields);
                }
                match options.context {
                    Some(context) => self.context(RunContext(context)),
                    None => self,
                }
            }
        }
    )*};
}

configure!(Invoke, Streaming);

// ---- graph and store ----

fn drawing<S: State>(graph: &CompiledStateGraph<S>, xray: &Value) -> Value {
    let depth = match xray {
        Value::Bool(true) => usize::MAX,
        other => other.as_u64().unwrap_or_default() as usize,
    };
    let drawing = graph.draw_expanded(depth);
    let mut nodes: Vec<&String> = drawing.nodes.iter().map(|n| &n.id).collect();
    let mut edges: Vec<_> = drawing.edges.iter().map(|e| (&e.from, &e.to, e.conditional)).collect();
    nodes.sort();
    edges.sort();
    json!({ "nodes": nodes, "edges": edges })
}

async fn store_search(world: &World, step: &Value) -> Record {
    let number = |key: &str| step[key].as_u64().map(|n| n as usize);
    let mut query = SearchQuery::new(namespace(&step["ns"])?);
    if let Some(filter) = step.get("filter") {
        query = query.filter(Filter::parse(filter)?);
    }
    query = query.limit(number("limit").unwrap_or(10)).offset(number("offset").unwrap_or(0));
    let items = world.store.search(query).await?;
    let mut shown: Vec<_> = items.iter().map(|i| json!([i.namespace.labels(), i.key, i.value])).collect();
    shown.sort_by_cached_key(spaced);
    Ok(json!({ "items": shown }))
}

/// JSON as Python writes it, which decides the order of items.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

async fn store_namespaces(world: &World, step: &Value) -> Record {
    let mut query = NamespaceQuery::new();
    if let Some(prefix) = step.get("prefix").filter(|v| !v.is_null()) {
        query = query.prefix(namespace(prefix)?);
    }
    if let Some(suffix) = step.get("suffix").filter(|v| !v.is_null()) {
        query = query.suffix(namespace(suffix)?);
    }
    if let Some(depth) = step["max_depth"].as_u64() {
        query = query.max_depth(depth as usize);
    }
    let mut found = world.store.list_namespaces(query).await?;
    found.sort();
    Ok(json!({ "namespaces": found }))
}
