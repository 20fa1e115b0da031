//! Results of nodes kept in a cache.
//!
//! A task that waits for another's result does so inside its own future, after all tasks of the step were begun, and
//! before it takes one of the run's permits: so whoever is waited for can go on.

use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use super::attempt::{End, Finished, Job};
use super::run::Run;
use super::save::Scribe;
use super::writes::TaskWrites;
use crate::cache::{Cache, CacheKey, Flight, Landing, Turn, take_off};
use crate::call::Call;
use crate::error::{CodecError, Error, ErrorKind, called};
use crate::id::TaskId;
use crate::plan::Plan;
use crate::state::{FieldKind, TaskInput};
use crate::value::{decode, encode};
use crate::view::ShownInput;
use crate::wall::caught;

impl Run {
    fn cache_key(&self, ix: usize) -> Result<Option<CacheKey>, Error> {
        let task = &self.tasks[ix];
        let node = &self.plan.nodes[task.node];
        let (Some(policy), Some(_)) = (&node.cache, self.cache()) else { return Ok(None) };
        let key = match &policy.key {
            Some(key) => {
                let mut none = || unreachable!("a cache key has no context");
                let (node, step, stop) = (task.node, self.step, self.stop);
                let plan = &*self.plan;
                let (input, state) = (task.given(&self.live.state), Some(&self.live.state));
                let call = Call { state, ..plan.call(node, input, (step, stop), &mut none) };
                let name = &self.plan.nodes[node].name;
                let key = caught(|| key(&call)).map_err(|panicked| {
                    let called = format!("the cache key of {}", called(name));
                    Error::panicked(name, &called, &panicked.0).in_step(step)
                })?;
                key.map_err(|e| Error::node_failed(name, e).in_step(step))?
            }
            None => self.whole_input_key(node, &task.input(&self.live.state))?,
        };
        let namespace = vec!["superstep".to_owned(), self.plan.name.to_string(), node.name.to_string()];
        Ok(Some(CacheKey { namespace, key: key_text(node.run.made_of, &key) }))
    }

    fn whole_input_key(&self, node: &crate::plan::NodePlan, input: &TaskInput) -> Result<Vec<u8>, Error> {
        let shown = match input {
            TaskInput::Sent(payload) => ShownInput::Sent(payload.clone()),
            TaskInput::State(state) => ShownInput::State {
                state: state.clone(),
                present: self.live.present.clone(),
                reads: node.reads.clone(),
                step: self.step,
                stop: self.stop,
                ty: self.plan.ty.clone(),
            },
        };
        let text = shown.json().to_string();
        if text == "null" || text.contains("__error__") {
            let refused =
                |why| Error::invalid(format!("the cache key of {} cannot be made: {why}", called(&node.name)));
            self.check_shown(input).map_err(|why| refused(why).at(&node.name).in_step(self.step))?;
        }
        Ok(text.into_bytes())
    }

    /// Whether all of an input can be shown: what cannot be looks like other input that cannot be.
    fn check_shown(&self, input: &TaskInput) -> Result<(), CodecError> {
        if !self.plan.ty.can_persist() {
            return Ok(());
        }
        match input {
            TaskInput::Sent(payload) => payload.to_json().map(drop),
            TaskInput::State(state) => self.plan.fields().iter().enumerate().try_for_each(|(field, spec)| {
                if spec.kind() == FieldKind::Untracked {
                    return Ok(());
                }
                self.plan
                    .ty
                    .field_json(state, field)
                    .map(drop)
                    .map_err(|why| why.of(&format!("field `{}`", spec.name())))
            }),
        }
    }

    /// The cache of the run, or that of a graph inside if the run has none.
    pub(super) fn cache(&self) -> Option<&Arc<dyn Cache>> {
        self.shared.cache.as_ref().or(self.cache.as_ref())
    }

    /// Gives tasks whose result is known that result. Of those with the same key, here and in other runs, one is to
    /// compute it.
    pub(super) async fn use_cache(&mut self) -> Result<(), Error> {
        let Some(cache) = self.cache().cloned().filter(|_| self.plan.ty.can_persist()) else { return Ok(()) };
        for ix in 0..self.tasks.len() {
            if self.tasks[ix].skip {
                continue;
            }
            let Some(key) = self.cache_key(ix)? else { continue };
            let turn = take_off(&*cache, &key);
            let known = Known { cache: cache.clone(), key, plan: self.plan.clone() };
            match turn {
                Turn::Waits(landing) => self.tasks[ix].turn = Some(Box::new(CacheTurn::Waits { landing, known })),
                Turn::First(flight) => match known.writes().await? {
                    Some(writes) => {
                        self.tasks[ix].skip = true;
                        self.commit_known(ix, writes).await?;
                    }
                    None => self.tasks[ix].turn = Some(Box::new(CacheTurn::First { _flight: flight })),
                },
            }
        }
        Ok(())
    }

    /// Shows and saves a result that a task has not computed itself.
    pub(super) async fn commit_known(&mut self, ix: usize, writes: TaskWrites) -> Result<(), Error> {
        self.tasks[ix].writes = writes;
        self.save_and_show(ix, true).await
    }

    /// Keeps the result of a task that ran.
    pub(super) async fn fill_cache(&mut self, ix: usize) -> Result<(), Error> {
        let Some(cache) = self.cache().cloned().filter(|_| self.plan.ty.can_persist()) else { return Ok(()) };
        let Some(key) = self.cache_key(ix)? else { return Ok(()) };
        let ttl = self.plan.nodes[self.tasks[ix].node].cache.as_ref().and_then(|c| c.ttl);
        let mut writes = self.tasks[ix].writes.output();
        let ty = &self.plan.ty;
        if writes.puts.places().iter().any(|place| ty.is_unsaved(&writes.puts, place)) {
            return Ok(());
        }
        let thread = self.shared.thread.clone().unwrap_or_else(|| "".into());
        let scribe = Scribe { thread, run: None };
        let name = &self.plan.nodes[self.tasks[ix].node].name;
        let record =
            writes.record(&self.plan, &scribe, TaskId::NULL, "".into()).map_err(|error| match error.of_value() {
                Some((what, why)) => {
                    let words = format!("the result of {} cannot be kept in the cache: {what}: {why}", called(name));
                    Error::new(ErrorKind::Store, words).at(name)
                }
                None => error.into(),
            })?;
        let entries: Vec<(String, Vec<u8>, bool)> =
            record.writes.iter().map(|w| (w.channel.to_string(), w.value.to_vec(), w.overwrite)).collect();
        let bytes = encode(&entries).map_err(|e| Error::new(ErrorKind::Store, e.to_string()))?;
        cache.set(vec![(key, bytes.into(), ttl)]).await.map_err(failed)
    }
}

/// What a task with a cache policy that found nothing in the cache is to do.
pub(crate) enum CacheTurn {
    /// Compute the result; others wait until this is dropped.
    First { _flight: Flight },
    /// Wait for the task that computes it.
    Waits { landing: Landing, known: Known },
}

/// Where a result will be that another task computes.
pub(crate) struct Known {
    cache: Arc<dyn Cache>,
    key: CacheKey,
    plan: Arc<Plan>,
}

impl Known {
    /// The result, if it is in the cache. One that does not decode is from another state: it is computed again.
    async fn writes(&self) -> Result<Option<TaskWrites>, Error> {
        let found = self.cache.get(std::slice::from_ref(&self.key)).await.map_err(failed)?;
        let Some(bytes) = found.into_iter().next().flatten() else { return Ok(None) };
        let writes =
            cached_writes(&bytes).and_then(|r| TaskWrites::from_record(&self.plan, &r).map_err(|e| e.to_string()));
        let writes = writes.inspect_err(|why| tracing::warn!(why, "a cached result does not decode")).ok();
        Ok(writes.filter(TaskWrites::is_finished))
    }
}

/// Waits for the task that computes the result of `job`, and runs `job` if that failed.
pub(super) async fn follow(landing: Landing, known: Known, job: Job) -> Finished {
    landing.wait().await;
    let ix = job.ix;
    match known.writes().await {
        Ok(Some(writes)) => Finished { ix, writes, end: End::Known },
        Ok(None) => job.run().await,
        Err(error) => Finished { ix, writes: TaskWrites::default(), end: End::Failed(error) },
    }
}

/// A key of a function and its input, as text.
pub(super) fn key_text(made_of: &str, input: &[u8]) -> String {
    let mut hasher = Xxh3::new();
    hasher.update(made_of.as_bytes());
    hasher.update(&[0]);
    hasher.update(input);
    format!("{:032x}", hasher.digest128())
}

fn failed(error: crate::CacheError) -> Error {
    Error::new(ErrorKind::Store, "the cache failed").caused_by(error)
}

fn cached_writes(bytes: &Bytes) -> Result<crate::TaskRecord, String> {
    let entries: Vec<(String, Vec<u8>, bool)> = decode(bytes).map_err(|e| e.to_string())?;
    let write = |(channel, value, overwrite): (String, Vec<u8>, bool)| {
        crate::WriteRecord::new(channel, value.into()).with_overwrite(overwrite)
    };
    Ok(crate::TaskRecord::new(TaskId::NULL, "").with_writes(entries.into_iter().map(write).collect()))
}
