//! The mutation log of a thread, out of what its tasks wrote.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Place, Thread};
use crate::checkpoint::Source;
use crate::error::Error;
use crate::id::CheckpointId;
use crate::names::START;
use crate::snapshot::StateSnapshot;
use crate::state::erased::Typed;
use crate::value::encode;
use crate::workflow::{LogEntry, Logged, Mutation, MutationLog, Workflow, WorkflowState, apply_entries};

impl<W> Thread<Workflow<W>>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    /// The mutations that made the state what it is, oldest first: those of the checkpoints from the first one to this one,
    /// and not those of forks that it does not come from.
    ///
    /// They are what tasks wrote, saved once with the thread and never changed; nobody has to record them. A step whose
    /// mutations were not saved (durability `exit`, pruned checkpoints, mutations without serde), or after which an update
    /// came with an answer, is one entry with the whole state, so that [`replay`](MutationLog::replay) from [`initial`](WorkflowState::initial) always gives the
    /// thread's state.
    ///
    /// ```
    /// use superstep::{MemorySaver, StateGraph, Workflow, START};
    /// # use superstep::{StateMutation, WorkflowState};
    /// # #[derive(Clone, Default)] struct Count(u32);
    /// # #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)] struct Add(u32);
    /// # impl StateMutation<Count> for Add { fn apply(self, s: &mut Count) { s.0 += self.0; } }
    /// # impl WorkflowState for Count {
    /// #     type Checkpoint = u32; type Mutation = Add;
    /// #     fn snapshot(&self) -> u32 { self.0 } fn restore(c: u32) -> Self { Count(c) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::<Workflow<Count>>::new()
    ///     .add_node("add", async |_: Workflow<Count>| Workflow::<Count>::mutate([Add(2)]))
    ///     .add_edge(START, "add")
    ///     .checkpointer(MemorySaver::new())
    ///     .compile()?;
    /// app.invoke(Workflow::<Count>::mutate([Add(40)])).thread("t").await?;
    /// let log = app.thread("t").mutation_log().await?;
    /// assert_eq!(log.entries()[1].mutation(), Some(&Add(2)));
    /// assert_eq!(log.replay(Count::initial())?.0, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the graph has no checkpointer, or reading fails.
    pub async fn mutation_log(&self) -> Result<MutationLog<W>, Error> {
        let lineage = self.lineage().await?;
        let (log, mut state) = (MutationLog::default(), W::initial());
        for (place, snapshot) in lineage.iter().enumerate() {
            let step = snapshot.step.unwrap_or_default();
            let before = place.checked_sub(1).map(|before| &lineage[before]);
            let mut entries = before.map(|before| entries_of(step, before)).unwrap_or_default();
            if !leads_to(&state, &entries, &snapshot.state.0) {
                let node = if snapshot.source == Some(Source::Input) { START } else { "" };
                entries =
                    vec![LogEntry { step, node: node.to_owned(), change: Logged::State(snapshot.state.0.snapshot()) }];
            }
            state = snapshot.state.0.clone();
            entries.into_iter().for_each(|entry| log.push(entry.step, entry.node, entry.change));
        }
        Ok(log)
    }

    /// The checkpoints from the first one to this one.
    async fn lineage(&self) -> Result<Vec<StateSnapshot<Workflow<W>>>, Error> {
        let everywhere: Self = Place { checkpoint: None, ..self.place.clone() }.into();
        let all = everywhere.history().await?;
        let id_of = |snapshot: &StateSnapshot<Workflow<W>>| Some(snapshot.checkpoint.as_ref()?.id);
        let Some(head) = self.place.checkpoint.or_else(|| id_of(all.first()?)) else { return Ok(Vec::new()) };
        let mut known: HashMap<CheckpointId, _> =
            all.into_iter().filter_map(|snapshot| Some((id_of(&snapshot)?, snapshot))).collect();
        if !known.contains_key(&head) {
            return Err(self.place.no_such_checkpoint(head));
        }
        let (mut lineage, mut next) = (Vec::new(), known.remove(&head));
        while let Some(snapshot) = next {
            next = snapshot.parent.as_ref().and_then(|parent| known.remove(&parent.id));
            lineage.push(snapshot);
        }
        lineage.reverse();
        Ok(lineage)
    }
}

/// What the tasks after a checkpoint did: a whole state first, to which the mutations are applied.
fn entries_of<W>(step: i64, before: &StateSnapshot<Workflow<W>>) -> Vec<LogEntry<W>>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    let mut tasks: Vec<_> = before.tasks.iter().collect();
    // In the order in which their writes were applied.
    tasks.sort_by(|one, other| one.path.cmp(&other.path));
    let written = tasks.into_iter().filter_map(|task| Some((&task.name, task.result.as_ref()?)));
    let written = written
        .flat_map(|(node, writes)| Typed::<Workflow<W>>::puts_of(&writes.writes).map(move |put| (node, &put.write)));
    let mut entries: Vec<LogEntry<W>> = written
        .map(|(node, write)| {
            let change = match write {
                Mutation::Apply(mutation) => Logged::Mutation(mutation.clone()),
                Mutation::Replace(state) => Logged::State(state.snapshot()),
            };
            LogEntry { step, node: node.clone(), change }
        })
        .collect();
    entries.sort_by_key(|entry| entry.mutation().is_some());
    entries
}

/// Whether the entries make one state of the other. What they did can be told only by what is saved of it.
fn leads_to<W: WorkflowState>(from: &W, entries: &[LogEntry<W>], to: &W) -> bool
where
    W::Mutation: Clone,
{
    let made = catch_unwind(AssertUnwindSafe(|| apply_entries(from.clone(), entries)));
    let Ok(Ok(made)) = made else { return false };
    // As JSON, where the entries of a map have an order.
    let shown = |state: &W| serde_json::to_value(state.snapshot()).ok();
    match (shown(&made), shown(to)) {
        (Some(made), Some(saved)) => made == saved,
        _ => matches!((encode(&made.snapshot()), encode(&to.snapshot())), (Ok(made), Ok(saved)) if made == saved),
    }
}
