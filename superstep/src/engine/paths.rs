//! Follows the conditional edges of a node: its paths are run inside its task, after it, and may do what it may.

use std::sync::Arc;

use super::attempt::{End, caught_future, failure_of_called, left_open, note_answers, refused, sent_nowhere};
use super::writes::TaskWrites;
use crate::context::{Context, lock};
use crate::error::{BoxError, Error, ErrorKind};
use crate::graph::{AsyncPath, PathFn, RouteFuture, Routes, SyncPath};
use crate::node::{Call, Given, Goto};
use crate::plan::{BranchPlan, END, Plan, START};
use crate::state::State;
use crate::wall::caught;

/// The conditional edges of a task.
pub(crate) struct Paths<'a, S: State> {
    pub(crate) plan: &'a Plan<S>,
    pub(crate) node: usize,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    /// The task's context. A task whose paths ask for one has it from its beginning.
    pub(crate) context: Option<&'a Context>,
}

impl<S: State> Paths<'_, S> {
    /// Runs the paths one after another on the state with the node's own writes, and adds where they lead to `writes`.
    pub(crate) async fn follow(&self, state: Arc<S>, writes: &mut TaskWrites<S>) -> End {
        let end = self.follow_each(&state, writes).await.map_or_else(|end| end, |()| End::Done);
        note_answers(writes, self.context);
        end
    }

    async fn follow_each(&self, state: &Arc<S>, writes: &mut TaskWrites<S>) -> Result<(), End> {
        for branch in &self.plan.nodes[self.node].branches {
            // That the node came to its end, or the path before, is a sign of life.
            self.context.inspect(|cx| cx.task.touch());
            let routes = match &branch.path.run {
                PathFn::Sync(path) => routes_of(path, &**state),
                PathFn::Async { run, .. } => self.run(run, state).await?,
            };
            self.plan.take_routes(self.node, branch, routes, writes).map_err(End::Failed)?;
        }
        Ok(())
    }

    /// Where an async path leads, unless the task ends in it with a question.
    async fn run(&self, path: &AsyncPath<S>, state: &Arc<S>) -> Result<Result<Routes, BoxError>, End> {
        let routes = caught_future(self.start(path, state)).await;
        self.left_open(routes.as_ref().err()).map_or(Ok(routes), Err)
    }

    fn start(&self, path: &AsyncPath<S>, state: &Arc<S>) -> RouteFuture {
        let mut context = || self.context.cloned().expect("a task whose paths ask for a context has one");
        let call = Call {
            plan: self.plan,
            node: self.node,
            input: Given::State(state),
            state: None,
            present: None,
            codec: None,
            step: self.step,
            stop: self.stop,
            context: &mut context,
        };
        let future = caught(|| path(call))
            .unwrap_or_else(|panicked| Box::pin(async move { Err(Box::new(panicked) as BoxError) }));
        match self.context.filter(|cx| cx.is_listened_to()) {
            Some(cx) => crate::current::inside(cx.clone(), future),
            None => future,
        }
    }

    fn left_open(&self, error: Option<&BoxError>) -> Option<End> {
        let (cx, node) = (self.context?, &*self.plan.nodes[self.node].name);
        if lock(&cx.task.answers).parent.take().is_some() {
            let why = "a graph that it called commands this one, but a path only leads; call that graph in the node";
            return Some(End::Failed(refused(&edge_of(node), node, why)));
        }
        left_open(cx, node, || edge_of(node), error)
    }
}

impl<S: State> Plan<S> {
    /// Follows paths that are plain functions, without waiting and without a copy of the state.
    pub(crate) fn follow_sync_branches(&self, node: usize, state: &S, writes: &mut TaskWrites<S>) -> Result<(), Error> {
        for branch in &self.nodes[node].branches {
            let PathFn::Sync(path) = &branch.path.run else { unreachable!("the caller looked") };
            self.take_routes(node, branch, routes_of(path, state), writes)?;
        }
        Ok(())
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the way out of every node, see `way_out`")]
    fn take_routes(
        &self,
        node: usize,
        branch: &BranchPlan<S>,
        routes: Result<Routes, BoxError>,
        writes: &mut TaskWrites<S>,
    ) -> Result<(), Error> {
        let from = &self.nodes[node].name;
        let routes = routes.map_err(|error| failure_of_called(error, from, &edge_of(from)))?;
        // Most paths name one node; what needs labels or is no node is looked at below.
        if let ([Goto::Node(name)], None) = (&*routes, &branch.map)
            && name != START
        {
            self.go_to(name, writes);
            return Ok(());
        }
        let mapped = match &branch.map {
            None => routes,
            Some(map) => mapped_routes(from, branch.path.name.as_deref(), map, routes)?,
        };
        mapped.iter().try_for_each(|route| check_route(from, route))?;
        mapped.into_iter().for_each(|route| self.go(route, writes));
        Ok(())
    }
}

/// What the errors of paths begin with.
fn edge_of(node: &str) -> String {
    format!("a conditional edge of `{}`", shown_name(node))
}

fn shown_name(node: &str) -> &str {
    if node == START { "START" } else { node }
}

/// A path can lead to every node but the start.
fn check_route(from: &str, route: &Goto) -> Result<(), Error> {
    match route {
        Goto::Node(name) if name == START => {
            let did = format!("{} led to `START`", edge_of(from));
            Err(Error::of_step(ErrorKind::Invalid, did, "").at(from))
        }
        Goto::Send(send) if send.node == END => Err(sent_nowhere(&edge_of(from), from, "END")),
        route => route.mistake().map_or(Ok(()), |why| Err(refused(&edge_of(from), from, &why))),
    }
}

/// Where a plain function leads; its panic is its error.
#[inline]
fn routes_of<S: State>(path: &SyncPath<S>, state: &S) -> Result<Routes, BoxError> {
    caught(|| path(state)).unwrap_or_else(|panicked| Err(Box::new(panicked)))
}

/// Where the labels that a path returned lead.
fn mapped_routes(from: &str, path: Option<&str>, map: &[(String, String)], routes: Routes) -> Result<Routes, Error> {
    let mapped = routes.into_iter().map(|route| match route {
        Goto::Node(label) => match map.iter().find(|(l, _)| *l == *label) {
            Some((_, target)) => Ok(Goto::from(target.clone())),
            None => {
                let known: Vec<&str> = map.iter().map(|(l, _)| l.as_str()).collect();
                let edge =
                    path.map_or_else(|| "a conditional edge".to_owned(), |p| format!("the conditional edge `{p}`"));
                let did = format!("{edge} of `{}` returned `{label}`", shown_name(from));
                let rest = format!(", which its map does not have; it has {known:?}");
                Err(Error::of_step(ErrorKind::Invalid, did, &rest).at(from))
            }
        },
        send => Ok(send),
    });
    mapped.collect()
}
