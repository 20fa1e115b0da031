//! What a checkpointer does by its nine methods, if it has no better way.

use std::collections::BTreeMap;

use super::backend::{CheckpointSummary, Deletion, plan_prune};
use super::{
    CheckpointError, Checkpointer, FieldRecord, FieldValue, Lease, ListQuery, Prune, SavedCheckpoint, SavedField,
    check_name,
};

pub(super) async fn copy_thread<C: Checkpointer + ?Sized>(
    saver: &C,
    from: &str,
    to: &str,
) -> Result<(), CheckpointError> {
    check_name(to)?;
    let namespaces = saver.namespaces(from).await?;
    if namespaces.is_empty() {
        return Err(CheckpointError::nothing_to_copy(from));
    }
    if !saver.namespaces(to).await?.is_empty() {
        return Err(CheckpointError::name_taken(to));
    }
    let epoch = saver.claim(to, "", None).await?.epoch;
    for namespace in &namespaces {
        let mut all = saver.list(from, namespace, &ListQuery::new()).await?;
        all.reverse();
        copy_namespace(saver, Lease::new(to, namespace, epoch), &all).await?;
    }
    // The copy belongs to nobody: who claimed its name before is fenced, and so is this copying.
    saver.claim(to, "", None).await.map(drop)
}

/// Saves checkpoints again, oldest first.
async fn copy_namespace<C: Checkpointer + ?Sized>(
    saver: &C,
    lease: Lease<'_>,
    all: &[SavedCheckpoint],
) -> Result<(), CheckpointError> {
    let mut head = None;
    for saved in all {
        let base = all.iter().find(|other| Some(other.record.id) == saved.record.base);
        let record = saved.record.clone().with_base(base.map(|base| base.record.id)).with_head(head);
        let record = record.with_fields(changes(base, saved)).with_writes(Vec::new());
        let id = record.id;
        saver.put(lease, record).await?;
        for task in &saved.writes {
            saver.put_writes(lease, id, task.clone()).await?;
        }
        head = Some(id);
    }
    Ok(())
}

/// What a checkpoint changed of its base.
fn changes(base: Option<&SavedCheckpoint>, saved: &SavedCheckpoint) -> Vec<FieldRecord> {
    let before = base.map_or(&[][..], |base| &base.fields);
    let is_gone = |known: &&SavedField| !saved.fields.iter().any(|field| field.name == known.name);
    let gone = before.iter().filter(is_gone).map(|known| FieldRecord::new(known.name.clone(), FieldValue::Absent));
    let mut changes: Vec<FieldRecord> = gone.collect();
    for field in &saved.fields {
        let known = before.iter().find(|known| known.name == field.name);
        let values = match known {
            Some(known) if known == field => continue,
            Some(known) if known.whole == field.whole && field.tail.starts_with(&known.tail) => {
                vec![FieldValue::Tail(field.tail[known.tail.len()..].to_vec())]
            }
            known => replaced(known.is_some(), field),
        };
        changes.extend(values.into_iter().map(|value| FieldRecord::new(field.name.clone(), value)));
    }
    changes
}

/// A whole value, and the writes to it that no record has any more.
fn replaced(is_known: bool, field: &SavedField) -> Vec<FieldValue> {
    let whole = match &field.whole {
        Some(whole) => Some(FieldValue::Whole(whole.clone())),
        None => is_known.then_some(FieldValue::Absent),
    };
    let tail = Some(&field.tail).filter(|tail| !tail.is_empty()).map(|tail| FieldValue::Tail(tail.clone()));
    whole.into_iter().chain(tail).collect()
}

pub(super) async fn prune<C: Checkpointer + ?Sized>(
    saver: &C,
    thread: &str,
    prune: &Prune,
) -> Result<usize, CheckpointError> {
    let mut summaries = BTreeMap::new();
    for namespace in saver.namespaces(thread).await? {
        let all = saver.list(thread, &namespace, &ListQuery::new()).await?;
        let oldest_first = all.iter().rev().map(|saved| CheckpointSummary::from(&saved.record)).collect();
        summaries.insert(namespace, oldest_first);
    }
    let mut pruned = 0;
    for (namespace, gone) in plan_prune(&summaries, prune) {
        pruned += saver.delete_checkpoints(thread, &namespace, &Deletion::of(gone)).await?;
    }
    Ok(pruned)
}

pub(super) async fn delete_run<C: Checkpointer + ?Sized>(saver: &C, run: &str) -> Result<usize, CheckpointError> {
    /// So many threads are looked at in one go.
    const PAGE: usize = 1000;
    let mut deleted = 0;
    let mut page = saver.threads(None, PAGE).await?;
    while let Some(last) = page.last() {
        for thread in &page {
            for namespace in saver.namespaces(thread).await? {
                let made = saver.list(thread, &namespace, &ListQuery::new().run(run)).await?;
                let deletion = Deletion::of(made.iter().map(|saved| saved.record.id)).written_by(run);
                deleted += saver.delete_checkpoints(thread, &namespace, &deletion).await?;
            }
        }
        page = saver.threads(Some(last), PAGE).await?;
    }
    Ok(deleted)
}
