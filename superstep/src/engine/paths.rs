//! Follows the conditional edges of a node: its paths are run inside its task, after it, and may do what it may.

use super::apply::local_state;
use super::attempt::{
    End, Watched, caught_future, edge_of, failure_of_called, leader, left_open, note_answers, refused,
};
use super::seed::StepSeed;
use super::writes::TaskWrites;
use crate::call::{AsyncPath, Context, Goto, PathFn, RouteFuture, Routes, SyncPath, Waiter, lock};
use crate::error::{BoxError, Error, ErrorKind};
use crate::index::NodeIx;
use crate::names::START;
use crate::plan::{BranchPlan, Plan};
use crate::state::Given;
use crate::state::erased::Snapshot;
use crate::wall::caught;

/// The conditional edges of a task.
pub(crate) struct Paths<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) node: NodeIx,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    /// The task's context. A task whose paths ask for one has it from its beginning.
    pub(crate) context: Option<&'a Context>,
}

impl Paths<'_> {
    /// Runs the paths one after another on the state with the node's own writes, and adds where they lead to `writes`.
    pub(crate) async fn follow(&self, state: &Snapshot, writes: &mut TaskWrites) -> End {
        let end = self.follow_each(state, writes).await.map_or_else(|end| end, |()| End::Done);
        note_answers(writes, self.context);
        end
    }

    /// Runs them by themselves, beside other tasks, on `state` with `writes`, until the run is cancelled.
    pub(crate) async fn follow_beside(&self, state: &Snapshot, writes: &mut TaskWrites, seed: &StepSeed) -> End {
        let state = match local_state(self.plan, state, &writes.puts) {
            Ok(state) => state,
            Err(error) => return End::Failed(error.in_writes_of(&[&self.plan.nodes[self.node].name])),
        };
        let waiter = Waiter { task: self.context.map(|cx| &*cx.task), around: seed.around.as_deref() };
        let future = std::pin::pin!(self.follow(&state, writes));
        let watched = Watched { future, cancel: None, run: &seed.run.cancel, waiter };
        watched.await.unwrap_or_else(|_cancelled| End::Failed(Error::cancelled()))
    }

    async fn follow_each(&self, state: &Snapshot, writes: &mut TaskWrites) -> Result<(), End> {
        for branch in &self.plan.nodes[self.node].branches {
            // That the node came to its end, or the path before, is a sign of life.
            self.context.inspect(|cx| cx.task.touch());
            let routes = match &branch.path.run {
                PathFn::Sync(path) => routes_of(path, state),
                PathFn::Async { run, .. } => self.run(run, state).await?,
            };
            self.plan.take_routes(self.node, branch, routes, writes).map_err(End::Failed)?;
        }
        Ok(())
    }

    /// Where an async path leads, unless the task ends in it with a question.
    async fn run(&self, path: &AsyncPath, state: &Snapshot) -> Result<Result<Routes, BoxError>, End> {
        let routes = caught_future(self.start(path, state)).await;
        self.left_open(routes.as_ref().err()).map_or(Ok(routes), Err)
    }

    fn start(&self, path: &AsyncPath, state: &Snapshot) -> RouteFuture {
        let mut context = || self.context.cloned().expect("a task whose paths ask for a context has one");
        let call = self.plan.call(self.node, Given::State(state), (self.step, self.stop), &mut context);
        let future = caught(|| path(call))
            .unwrap_or_else(|panicked| Box::pin(async move { Err(Box::new(panicked) as BoxError) }));
        let future = match self.context.filter(|cx| cx.is_listened_to()) {
            Some(cx) => crate::current::inside(cx.clone(), future),
            None => future,
        };
        match self.context.and_then(|cx| cx.task.slot.clone()) {
            Some(slot) => slot.hold(future),
            None => future,
        }
    }

    fn left_open(&self, error: Option<&BoxError>) -> Option<End> {
        let (cx, node) = (self.context?, &*self.plan.nodes[self.node].name);
        if lock(&cx.task.answers).parent.take().is_some() {
            let why = "a graph that it called commands this one, but a path only leads; call that graph in the node";
            return Some(End::Failed(refused(&edge_of(None, node), node, why)));
        }
        left_open(cx, node, || edge_of(None, node), error)
    }
}

impl Plan {
    /// Follows paths that are plain functions, without waiting and without a copy of the state.
    pub(crate) fn follow_sync_branches(
        &self,
        node: NodeIx,
        state: &Snapshot,
        writes: &mut TaskWrites,
    ) -> Result<(), Error> {
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
        node: NodeIx,
        branch: &BranchPlan,
        routes: Result<Routes, BoxError>,
        writes: &mut TaskWrites,
    ) -> Result<(), Error> {
        let (node, path) = (&self.nodes[node], Some(&branch.path));
        let from = &node.name;
        let routes = routes.map_err(|error| failure_of_called(error, from, &leader(node, path)))?;
        // Most paths name one node; what needs labels or is no node is looked at below.
        if let ([Goto::Node(name)], None) = (&*routes, &branch.map)
            && name != START
        {
            return self.go_to(name, node, path, writes);
        }
        let mapped = match &branch.map {
            None => routes,
            Some(map) => mapped_routes(from, branch.path.name.as_deref(), map, routes)?,
        };
        if mapped.iter().any(|route| matches!(route, Goto::Node(name) if name == START)) {
            let did = format!("{} led to `START`", leader(node, path));
            return Err(Error::of_step(ErrorKind::Invalid, did, "").at(from));
        }
        mapped.into_iter().try_for_each(|route| self.go(route, node, path, writes))
    }
}

/// Where a plain function leads; its panic is its error.
#[inline]
fn routes_of(path: &SyncPath, state: &Snapshot) -> Result<Routes, BoxError> {
    caught(|| path(state)).unwrap_or_else(|panicked| Err(Box::new(panicked)))
}

/// Where the labels that a path returned lead.
fn mapped_routes(from: &str, path: Option<&str>, map: &[(String, String)], routes: Routes) -> Result<Routes, Error> {
    let mapped = routes.into_iter().map(|route| match route {
        Goto::Node(label) => match map.iter().find(|(l, _)| *l == *label) {
            Some((_, target)) => Ok(Goto::from(target.clone())),
            None => {
                let known: Vec<&str> = map.iter().map(|(l, _)| l.as_str()).collect();
                let is_list = map.iter().all(|(label, target)| label == target);
                let did = format!("{} returned `{label}`", edge_of(path, from));
                let rest = if is_list {
                    format!(", which is not in its list of targets {known:?}")
                } else {
                    format!(", which its map does not have; it has {known:?}")
                };
                Err(Error::of_step(ErrorKind::Invalid, did, &rest).at(from))
            }
        },
        send => Ok(send),
    });
    mapped.collect()
}
