//! The beginning of a run: the checkpoint it starts from, and what its caller brings along.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::apply::{Applied, apply, apply_start, guarded, local_state};
use super::live::{MOST_STEPS, Start};
use super::run::{Run, RunInput};
use super::save::{Loaded, Reading};
use super::tasks;
use super::writes::TaskWrites;
use crate::call::{AnyCommand, GivenAnswers, Goto, ReplayState};
use crate::checkpoint::{Interrupt, ListQuery, Source};
use crate::error::{Error, ErrorKind};
use crate::id::{CheckpointId, TaskId};
use crate::names::{END, START};
use crate::plan::InputMode;
use crate::state::erased::Writes;
use crate::value::check_levels;
use crate::view::field_json;

/// An update for a workflow, which runs on a value.
pub(super) fn no_value() -> Error {
    Error::invalid("an entrypoint runs on a value; give it one, not an update of what it returned")
}

pub(super) fn unencodable_input(why: &str) -> Error {
    Error::invalid(format!("the input cannot be encoded: {why}"))
}

impl Run {
    pub(super) async fn load(&mut self) -> Result<(), Error> {
        if self.cache().is_none()
            && let Some(node) = self.plan.nodes.iter().find(|n| n.cache.is_some())
        {
            let name = &node.name;
            return Err(Error::invalid(format!(
                "node `{name}` has a cache policy, but the graph has no cache; give it one with `.cache(..)`"
            )));
        }
        let mut last_step = -2;
        if let Some(loaded) = self.find_checkpoint().await? {
            let Loaded { record, live, pending, is_older, .. } = *loaded;
            if let Some(saver) = self.saver.as_mut() {
                saver.older = is_older.then_some((record.id, self.plan.version));
            }
            last_step = record.step;
            self.live = live;
            self.pending = pending;
            self.checkpoint = Some(record.id);
            self.saved = Some(record.id);
            self.previous = record.parent;
            self.source = Some(record.source);
        } else if self.saver.is_some() {
            self.live.journal = Some(super::save::Journal::default());
        }
        if matches!(self.plan.input, InputMode::Entry) {
            let field = self.plan.field_named("__previous__");
            self.previous_value = field.and_then(|f| field_json(&*self.plan.ty, &self.live.state, f));
        }
        self.step = last_step + 1;
        let limit = i64::try_from(self.shared.recursion_limit).unwrap_or(MOST_STEPS);
        self.stop = self.step + limit.min(MOST_STEPS) + 1;
        Ok(())
    }

    fn addressed(&self) -> Option<CheckpointId> {
        self.config.checkpoint.or_else(|| self.config.ancestors.get(&self.config.namespace).copied())
    }

    /// The checkpoint to start from. The outermost graph of a run claims the thread for all of it.
    async fn find_checkpoint(&mut self) -> Result<Option<Box<Loaded>>, Error> {
        let addressed = self.addressed();
        let Some(saver) = &mut self.saver else { return Ok(None) };
        let found = if self.config.nested {
            saver.epoch = *self.shared.epoch.get().expect("the outermost graph has claimed the thread");
            self.find_inside(addressed).await?
        } else {
            let (head, found) = saver.claim(&self.plan, addressed, Reading::Whole).await?;
            let _ = self.shared.epoch.set(saver.epoch);
            self.head = head;
            found
        };
        match (addressed, &found, &self.saver) {
            (Some(id), None, Some(saver)) => {
                Err(Error::invalid(format!("thread `{}` has no checkpoint {id}", saver.thread)))
            }
            (Some(id), Some(_), _) => {
                self.superseded = self.head != Some(id);
                Ok(found)
            }
            _ => Ok(found),
        }
    }

    /// The same for a graph inside another one.
    async fn find_inside(&mut self, addressed: Option<CheckpointId>) -> Result<Option<Box<Loaded>>, Error> {
        let Some(saver) = &self.saver else { return Ok(None) };
        if addressed.is_some() {
            self.head = saver.head().await?;
            return Ok(saver.load(&self.plan, addressed).await?);
        }
        if let Some(replay) = &self.config.replay {
            self.config.resuming = None;
            if replay.first_visit(&self.config.namespace) {
                self.head = saver.head().await?;
                let query = ListQuery::new().before(replay.before).limit(1);
                let found = (*saver.checkpointer).list(&saver.thread, &saver.namespace, &query).await?;
                return Ok(found.into_iter().next().map(|s| saver.decode(&self.plan, s)).transpose()?);
            }
        }
        let latest = saver.load(&self.plan, None).await?;
        self.head = latest.as_ref().map(|loaded| loaded.record.id);
        Ok(latest)
    }

    pub(super) async fn begin(&mut self, input: RunInput) -> Result<(), Error> {
        let is_command = matches!(input, RunInput::Command(_));
        let wants_to_go_on = matches!(input, RunInput::Nothing) || is_command;
        let resuming = self.live.max_version > 0 && self.config.resuming.unwrap_or(wants_to_go_on);
        if resuming {
            self.refuse_lost_work()?;
        }
        let time_travel = self.is_time_travel(&input);
        self.replaying = time_travel || self.superseded;
        if time_travel {
            self.pending.null_resume = None;
            self.pending.tasks.iter_mut().for_each(|(_, w)| w.rest_mut().resume = None);
        }
        let old_branch = matches!(self.source, Some(Source::Update | Source::Fork));
        let forks = resuming && time_travel && (!old_branch || self.superseded);
        let mut carried = TaskWrites::default();
        let mut fresh = None;
        match input {
            RunInput::Command(command) => {
                let fresh_thread = self.live.max_version == 0;
                let (writes, goto) = self.take_command(command, forks).await?;
                if fresh_thread {
                    fresh = Some((writes.puts.clone(), goto));
                }
                if forks {
                    carried = writes;
                }
            }
            RunInput::Nothing => {}
            RunInput::Writes(_) if matches!(self.plan.input, InputMode::Entry) => return Err(no_value()),
            RunInput::Writes(update) => fresh = Some((self.plan.ty.admit(update, None)?, Vec::new())),
            RunInput::Value(value) => return self.begin_with_value(value, resuming).await,
            RunInput::Refused(refused) => return Err(refused.into()),
            RunInput::Unencodable(why) => return Err(unencodable_input(&why)),
        }
        self.apply_null_writes(carried)?;
        let mut bound = None;
        if resuming {
            self.live.stop_seen = self.live.max_version;
            if forks {
                bound = old_branch.then_some(self.previous).flatten();
                self.pending.tasks.iter_mut().for_each(|(_, w)| w.rest_mut().interrupts = None);
                self.put_checkpoint(Source::Fork).await?;
            }
            self.show_values(&[]).await;
        } else if let Some((writes, goto)) = fresh {
            let start = Start::Writes { writes: self.savable(writes)?, goto };
            self.take_input(start).await?;
        } else if self.config.resuming.is_none() {
            return Err(Error::new(ErrorKind::EmptyInput, "there is no input, and no saved work to resume"));
        }
        self.tell_subgraphs(resuming, time_travel, bound);
        Ok(())
    }

    /// What the caller wrote, as something that can be saved before its step has ended.
    fn savable(&self, writes: Writes) -> Result<Writes, Error> {
        if self.saver.is_none() {
            return Ok(writes);
        }
        Ok(guarded(&self.plan, |_| self.plan.ty.savable(&self.live.state, writes))?)
    }

    /// What a command writes after what commands before it wrote in this step. What is refused is refused before it is saved:
    /// a thread that keeps it could not go on.
    fn with_earlier(&mut self, writes: Writes) -> Result<Writes, Error> {
        let earlier = &self.pending.null.puts;
        if writes.is_empty() || earlier.is_empty() {
            return self.savable(writes);
        }
        let mut all = earlier.clone();
        all.extend(writes.clone());
        let is_unsaved = |place| self.saver.is_some() && self.plan.ty.is_unsaved(&writes, place);
        if !writes.places().iter().any(is_unsaved) {
            local_state(&self.plan, &self.live.state, &all)?;
            return Ok(writes);
        }
        let whole = self.savable(all)?;
        // The whole state has in it what was written before.
        self.pending.null.puts.clear();
        let log = std::mem::take(&mut self.pending.null_log);
        self.pending.null_log = log.into_iter().filter(|write| super::is_reserved(&write.channel)).collect();
        Ok(whole)
    }

    /// Work for a node that is gone is not ignored in silence.
    fn refuse_lost_work(&self) -> Result<(), Error> {
        let (Some(node), Some(saver)) = (self.live.lost.first(), &self.saver) else { return Ok(()) };
        let inside = match &*saver.namespace {
            "" => String::new(),
            namespace => format!(" in `{namespace}`"),
        };
        Err(Error::invalid(format!(
            "thread `{}` waits for node `{node}`{inside}, which the graph has no more; say what became of it with \
             `renamed_node(\"{node}\", ..)` or `removed_node(\"{node}\", ..)`, or drop what is left to do with \
             `clear_tasks` or new input",
            saver.thread
        )))
    }

    async fn begin_with_value(&mut self, value: Value, resuming: bool) -> Result<(), Error> {
        if resuming {
            self.live.stop_seen = self.live.max_version;
            self.show_values(&[]).await;
        } else {
            self.take_input(Start::Value(value)).await?;
        }
        self.tell_subgraphs(resuming, false, None);
        Ok(())
    }

    fn is_time_travel(&self, input: &RunInput) -> bool {
        if self.addressed().is_none() && self.config.replay.is_none() {
            return false;
        }
        let own_entry = self.config.nested && self.config.ancestors.contains_key(&self.config.namespace);
        let answers = matches!(input, RunInput::Command(c) if c.resume.is_some());
        own_entry || !(answers || self.config.resuming == Some(true))
    }

    fn tell_subgraphs(&mut self, resuming: bool, time_travel: bool, bound: Option<CheckpointId>) {
        if self.config.nested {
            return;
        }
        self.config.resuming = Some(resuming);
        if time_travel {
            let branched = matches!(self.source, Some(Source::Update | Source::Fork));
            let before = bound.or(self.previous.filter(|_| branched)).unwrap_or_else(|| self.checkpoint_id());
            self.config.replay = Some(Arc::new(ReplayState::new(before)));
        }
    }

    /// Checks a command and notes what it writes; a fork carries it along instead.
    async fn take_command(&mut self, command: AnyCommand, forks: bool) -> Result<(TaskWrites, Vec<Goto>), Error> {
        if command.is_for_parent {
            return Err(Error::new(ErrorKind::InvalidUpdate, "there is no parent graph to command"));
        }
        let mut writes = TaskWrites::of_puts(self.with_earlier(self.plan.ty.admit(command.update?, None)?)?);
        let goto: Vec<Goto> = command.goto.into_vec();
        for to in &goto {
            if let Some(why) = to.mistake() {
                return Err(Error::invalid(format!("the command: {why}")));
            }
            self.command_goto(to, &mut writes)?;
        }
        let resume = match command.resume.map(|r| r.0) {
            Some(_) if self.saver.is_none() => {
                return Err(Error::invalid("a question can only be answered in a graph with a checkpointer"));
            }
            Some(GivenAnswers::Unencodable(why)) => {
                return Err(Error::invalid(format!("the answer cannot be encoded: {why}")));
            }
            Some(GivenAnswers::ById(map)) => {
                self.check_answers(&map)?;
                map.values().try_for_each(savable_answer)?;
                self.config.resume_map = Some(Arc::new(map));
                None
            }
            Some(GivenAnswers::One(value)) => {
                savable_answer(&value)?;
                if self.has_several_questions() {
                    let words = "several questions are open; answer by their ids with `Resume::by_id`";
                    return Err(Error::new(ErrorKind::AmbiguousResume, words));
                }
                Some(value)
            }
            None => None,
        };
        if !writes.has_output() && resume.is_none() && self.config.resume_map.is_none() {
            let unknown = goto.iter().find_map(|to| match to {
                Goto::Node(name) if name != END => Some(format!(": there is no node `{name}` to go to")),
                _ => None,
            });
            let words = format!("the command is empty{}", unknown.unwrap_or_default());
            return Err(Error::new(ErrorKind::EmptyInput, words));
        }
        if forks {
            self.pending.null_resume = resume;
            return Ok((writes, goto));
        }
        if writes.has_output() || resume.is_some() {
            self.pending.null_resume = resume;
            let null = &mut self.pending.null;
            null.puts.extend(writes.puts.clone());
            null.signals.extend(writes.signals.iter().copied());
            null.encoded.clear();
            null.rest_mut().sends.extend(writes.sends().iter().cloned());
            if let Some(saver) = &self.saver {
                let record = writes.record(&self.plan, &saver.scribe, TaskId::NULL, "".into())?;
                self.pending.null_log.extend(saver.marked(self.saved, record.writes));
            }
            self.save_null_writes().await?;
        }
        Ok((writes, goto))
    }

    fn command_goto(&self, to: &Goto, writes: &mut TaskWrites) -> Result<(), Error> {
        match to {
            Goto::Send(send) => {
                if self.plan.node(&send.node).is_none_or(|node| self.plan.nodes[node].hidden) {
                    self.unknown_in_command("sends to", &send.node)?;
                }
                writes.rest_mut().sends.push(send.clone());
            }
            Goto::Node(name) => match self.plan.node(name).and_then(|n| self.plan.nodes[n].wake) {
                Some(channel) => writes.signals.push((channel, 0)),
                None => {
                    if name != END {
                        self.unknown_in_command("goes to", name)?;
                    }
                    writes.done = true;
                }
            },
        }
        Ok(())
    }

    fn unknown_in_command(&self, verb: &str, to: &str) -> Result<(), Error> {
        self.plan.unknown_target(&format!("the command that the run begins with {verb}"), START, to)
    }

    /// An answer must be for a question of this checkpoint.
    fn check_answers(&self, answers: &BTreeMap<String, Value>) -> Result<(), Error> {
        if self.superseded {
            return Ok(());
        }
        let asked = |id: &String| {
            self.pending.tasks.iter().any(|(_, w)| w.interrupts().into_iter().flatten().any(|i| i.id == *id))
        };
        match answers.keys().find(|id| !asked(id)) {
            None => Ok(()),
            Some(id) => {
                let open: Vec<&str> = self.open_questions().map(|i| i.id.as_str()).collect();
                let words = format!("nobody asked a question with id `{id}`; open are {open:?}");
                Err(Error::new(ErrorKind::UnknownInterrupt, words))
            }
        }
    }

    fn open_questions(&self) -> impl Iterator<Item = &Interrupt> {
        self.pending.tasks.iter().flat_map(|(_, w)| w.open_questions())
    }

    /// Whether one answer could be for more than one question. A called task and its caller ask one and the same.
    fn has_several_questions(&self) -> bool {
        let mut open = self.open_questions();
        let first = open.next();
        first.is_some_and(|first| open.any(|other| other.id != first.id))
    }

    fn apply_null_writes(&mut self, mut carried: TaskWrites) -> Result<(), Error> {
        if !self.pending.null.has_output() && !carried.has_output() {
            return Ok(());
        }
        let mut all = self.pending.null.output();
        all.puts.extend(std::mem::take(&mut carried.puts));
        all.signals.extend(std::mem::take(&mut carried.signals));
        all.encoded.clear();
        carried.take_sends(&mut all.rest_mut().sends);
        let known = self.live.updated.take();
        apply(&self.plan, &mut self.live, None, &mut [Applied::by_caller(&mut all)])?;
        let updated = self.live.updated.take().unwrap_or_default();
        self.live.updated = known.map(|mut known| {
            known.extend(updated.into_iter().filter(|c| !known.contains(c)).collect::<Vec<_>>());
            known
        });
        Ok(())
    }

    /// New input: what was left to do is dropped, and the run starts over from the start node.
    pub(super) async fn take_input(&mut self, start: Start) -> Result<(), Error> {
        if self.saves_at_exit() {
            self.input = Some(start.clone());
        }
        let is_fresh = self.live.max_version == 0;
        match (start, &self.plan.input) {
            (Start::Writes { writes, goto: _ }, InputMode::Fields(fields)) => {
                let writes = writes.only(|field| fields.contains(&field));
                self.replace_work(None, Some(TaskWrites::of_puts(writes)))?;
            }
            (start, _) if is_fresh => apply_start(&self.plan, &mut self.live, start),
            (start, _) => self.replace_work(Some(start), None)?,
        }
        self.pending.clear();
        self.put_checkpoint(Source::Input).await
    }

    /// Applies an input, and drops what was left to do.
    fn replace_work(&mut self, start: Option<Start>, mut writes: Option<TaskWrites>) -> Result<(), Error> {
        let mut dropped = tasks::next_tasks(&self.plan, &self.live, self.live.updated.as_deref());
        let dropped = dropped.iter_mut().map(Applied::of_task);
        let mut batch: Vec<Applied<'_>> = writes.iter_mut().map(Applied::by_caller).chain(dropped).collect();
        Ok(apply(&self.plan, &mut self.live, start, &mut batch)?)
    }
}

/// An answer that could not be saved is refused before it is given to its question.
fn savable_answer(answer: &Value) -> Result<(), Error> {
    check_levels(answer).map_err(|why| Error::invalid(format!("the answer cannot be saved: {why}")))
}
