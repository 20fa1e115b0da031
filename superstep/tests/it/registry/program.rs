//! Graphs of different states in one map behind axum, with streams that can be left and joined again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use superstep::{AnyGraph, RunHandle, RunOptions, StateSnapshot};

#[derive(Clone)]
struct App {
    graphs: Arc<HashMap<String, AnyGraph>>,
    runs: Arc<Mutex<HashMap<String, RunHandle>>>,
}

#[derive(serde::Deserialize)]
struct NewRun {
    input: Value,
    #[serde(default)]
    options: RunOptions,
}

type Events = Sse<BoxStream<'static, Result<sse::Event, axum::Error>>>;

async fn start(app: State<App>, Path(graph): Path<String>, Json(new): Json<NewRun>) -> Result<String, StatusCode> {
    let graph = app.graphs.get(&graph).ok_or(StatusCode::NOT_FOUND)?;
    let run = graph.stream(new.input).options(new.options).spawn(); // goes on when nobody watches
    let id = run.id().to_string();
    app.runs.lock().unwrap().insert(id.clone(), run);
    Ok(id)
}

async fn watch(app: State<App>, Path(id): Path<String>, headers: HeaderMap) -> Result<Events, StatusCode> {
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0);
    let run = app.runs.lock().unwrap().get(&id).cloned().ok_or(StatusCode::NOT_FOUND)?;
    let lines = run.watch(seen).map(|event| sse::Event::default().id(event.sequence.to_string()).json_data(event));
    Ok(Sse::new(lines.boxed()))
}

type Place = Path<(String, String)>;

async fn state(app: State<App>, Path((graph, thread)): Place) -> Result<Json<StateSnapshot>, StatusCode> {
    let graph = app.graphs.get(&graph).ok_or(StatusCode::NOT_FOUND)?;
    graph.thread(thread).state().await.map(Json).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

pub(crate) fn router(graphs: impl IntoIterator<Item = AnyGraph>) -> Router {
    let graphs = graphs.into_iter().map(|graph| (graph.name().to_owned(), graph)).collect::<HashMap<_, _>>();
    let runs = Router::new().route("/graphs/{graph}/runs", post(start)).route("/runs/{id}/events", get(watch));
    runs.route("/graphs/{graph}/threads/{thread}", get(state))
        .with_state(App { graphs: graphs.into(), runs: Arc::default() })
}
