//! Steps that nobody watches, each of one plain node that does not wait: one after another, without
//! giving up the thread and without a list of tasks. They are saved on the way; if a save has to be
//! waited for, the thread is given up for it.
//!
//! The parts are those of every other step; only the way between them is shorter.

use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};

use super::apply::apply_one;
use super::attempt::{End, Finished, NodeCall, admitted, poll_node};
use super::execute::{Polled, Started};
use super::run::{AtWork, Run, Tick};
use super::save::Unsaved;
use super::tasks::{self, Ahead};
use super::writes::TaskWrites;
use crate::call::{Context, Steer};
use crate::checkpoint::{Durability, Few, Refill, Source, WriteRecord};
use crate::error::Error;
use crate::plan::{Plan, StopAt};
use crate::state::TaskInput;
use crate::state::erased::Writes;

/// How many steps are run before the run takes a breath.
const BREATH: usize = 64;

/// The same if each has to be on the disk, which takes its time.
const SHORT_BREATH: usize = 8;

/// If each has to be on the disk, a breath after so long gives the thread to others.
const LONGEST: Duration = Duration::from_millis(50);

/// Whether a step is over.
enum Over {
    Yes,
    /// But for its checkpoint, which has to be waited for.
    Save(Unsaved),
    /// The node failed on its way out.
    Failed(Box<Finished>),
}

impl Run {
    /// Whether nobody reads a stream of it or of a graph around it, and steps are saved one by one if at all.
    pub(super) fn may_glide(&self) -> bool {
        let saves_each = self.saver.as_ref().is_none_or(|s| s.durability != Durability::Exit);
        self.shared.sink.is_none() && saves_each
    }

    /// Runs steps as long as they are of this kind. The next one is prepared then, and its node may
    /// have been started.
    pub(super) fn glide(&mut self, cx: &mut Poller<'_>) -> Result<(Tick, Option<Box<Started>>), Error> {
        let plan = self.plan.clone();
        if self.is_smooth(&plan) {
            self.tasks.clear();
            for _ in 0..if self.is_synced() { SHORT_BREATH } else { BREATH } {
                let ahead = tasks::ahead(&plan, &self.live);
                self.may_step()?;
                let node = match ahead {
                    Ahead::Nothing => return Ok((Tick::Done, None)),
                    Ahead::Lone(node) if plan.nodes[node].glides() => node,
                    _ => return self.prepare_next(),
                };
                if self.shared.drain_reason().is_some() {
                    return self.prepare_next();
                }
                if plan.nodes[node].hidden {
                    let (puts, steer) = self.start_outcome();
                    match self.glide_over(&plan, node, puts, steer, cx)? {
                        Over::Yes => continue,
                        not_yet => return Ok(self.ended_gliding(node, not_yet)),
                    }
                }
                self.at_work = AtWork::Node(node);
                let (mut call, context) = if plan.nodes[node].run.asks {
                    let input = TaskInput::State(self.live.state.clone());
                    self.start_in_place(node, &plan, &input)
                } else {
                    (NodeCall { future: self.call_on_state(node, &plan), span: tracing::Span::none() }, None)
                };
                let polled = match poll_node(&mut call.future, &call.span, cx) {
                    Poll::Ready(Ok(outcome)) if is_easy(context.as_ref()) => {
                        drop(call);
                        let puts = match admitted(&plan, node, outcome.update, &self.live.state) {
                            Ok(puts) => puts,
                            Err(error) => {
                                let failed = Finished { ix: 0, writes: TaskWrites::default(), end: End::Failed(error) };
                                return Ok(self.ended_gliding(node, Over::Failed(Box::new(failed))));
                            }
                        };
                        match self.glide_over(&plan, node, puts, outcome.steer, cx)? {
                            Over::Yes => continue,
                            not_yet => return Ok(self.ended_gliding(node, not_yet)),
                        }
                    }
                    Poll::Ready(result) => Polled::Ready(result),
                    Poll::Pending => Polled::Pending(call),
                };
                self.make_lone_task(node);
                return Ok((Tick::Go, Some(Box::new(Started { context, polled }))));
            }
            return Ok((Tick::Breathe, None));
        }
        self.prepare_next()
    }

    fn is_synced(&self) -> bool {
        self.saver.as_ref().is_some_and(|saver| saver.durability == Durability::Sync)
    }

    /// Gives the thread to others, if it is time. The runtime counts breaths, and does not know how long they were: where
    /// that matters, the clock decides too. Elsewhere it must not, so that a run gives way at the same points each time.
    pub(super) async fn breathe(&mut self) {
        if !self.is_synced() {
            return tokio::task::consume_budget().await;
        }
        let last = *self.breathed.get_or_insert_with(Instant::now);
        if last.elapsed() < LONGEST {
            tokio::task::consume_budget().await;
        } else {
            tokio::task::yield_now().await;
            self.breathed = Some(Instant::now());
        }
    }

    fn prepare_next(&mut self) -> Result<(Tick, Option<Box<Started>>), Error> {
        self.prepare();
        Ok((self.decide()?, None))
    }

    /// The rest of a step that has to be ended otherwise.
    fn ended_gliding(&mut self, node: usize, over: Over) -> (Tick, Option<Box<Started>>) {
        match over {
            Over::Yes => (Tick::Breathe, None),
            Over::Save(unsaved) => (Tick::Save(unsaved), None),
            Over::Failed(ended) => {
                self.make_lone_task(node);
                (Tick::Go, Some(Box::new(Started { context: None, polled: Polled::Ended(*ended) })))
            }
        }
    }

    /// Whether nothing looks into the steps of this run from outside.
    fn is_smooth(&self, plan: &Plan) -> bool {
        let nowhere = |own: &Option<StopAt>, plan: &StopAt| *own.as_ref().unwrap_or(plan) == StopAt::Nowhere;
        plan.is_steady()
            && plan.step_timeout.is_none()
            && !self.debug
            && !tracing::enabled!(tracing::Level::DEBUG)
            && self.shared.max_concurrency.is_none()
            && self.pending.is_empty()
            && self.live.former.is_none()
            && nowhere(&self.config.stop_before, &plan.stop_before)
            && nowhere(&self.config.stop_after, &plan.stop_after)
    }

    /// Puts the records of what a node wrote into the draft; says how many there are, if someone saves them.
    fn draft_puts(&mut self, plan: &Plan, writes: &mut TaskWrites) -> Result<Option<usize>, Error> {
        let (Some(saver), Some(draft)) = (&self.saver, &mut self.draft) else { return Ok(None) };
        let mut into = Refill::after(&mut draft.lone_task(&saver.scribe.labels).writes, 0);
        writes.encode_puts(plan, &saver.scribe, &mut into)?;
        Ok(Some(into.filled()))
    }

    /// Takes them out again.
    fn drafted_puts(&mut self, puts: usize) -> Few<WriteRecord, 2> {
        let (Some(saver), Some(draft)) = (&self.saver, &mut self.draft) else { return Few::new() };
        std::mem::take(&mut draft.lone_task(&saver.scribe.labels).writes).into_iter().take(puts).collect()
    }

    /// Ends a step with what its node returned.
    fn glide_over(
        &mut self,
        plan: &Plan,
        node: usize,
        puts: Writes,
        steer: Option<Box<Steer>>,
        cx: &mut Poller<'_>,
    ) -> Result<Over, Error> {
        let mut writes = TaskWrites::of_puts(puts);
        let mut updated = self.used_list();
        let branches = match plan.way_out(node, steer, &mut writes) {
            Ok(branches) => branches,
            Err(end) => return Ok(Over::Failed(Box::new(Finished { ix: 0, writes, end }))),
        };
        let puts = self.draft_puts(plan, &mut writes).map_err(|error| self.given_by(node, error))?;
        if branches {
            match self.branch_now(plan, node, &mut writes, updated) {
                Ok(early) => updated = early,
                Err(error) => {
                    if let Some(puts) = puts.filter(|puts| *puts > 0) {
                        writes.rest_mut().merged = self.drafted_puts(puts);
                    }
                    return Ok(Over::Failed(Box::new(Finished { ix: 0, writes, end: End::Failed(error) })));
                }
            }
        }
        if let Some(puts) = puts {
            self.note_unsaved(plan, node, puts, &mut writes)?;
        }
        let updated = apply_one(plan, &mut self.live, Some(node), &mut writes, updated);
        let updated = updated.map_err(|e| self.torn(e, vec![node]))?;
        let show = self.touches_output(&updated);
        self.live.updated = Some(updated);
        self.tasks.clear();
        self.desk = None;
        self.replaying = false;
        self.config.resuming = None;
        if show {
            self.note_shown(&[]);
        }
        self.source = Some(Source::Loop);
        self.checkpoint = None;
        let unsaved = if self.saver.is_some() {
            self.put_checkpoint_now(cx).map_err(|error| self.given_by(node, error))?
        } else {
            None
        };
        self.step += 1;
        Ok(unsaved.map_or(Over::Yes, Over::Save))
    }
}

/// Whether a node neither asked nor was answered.
fn is_easy(context: Option<&Context>) -> bool {
    context.is_none_or(|cx| cx.task.is_untroubled())
}
