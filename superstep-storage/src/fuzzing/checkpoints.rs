//! Target `checkpoint`: what rows and records hold, from someone who can seal.

use std::collections::HashSet;
use std::sync::OnceLock;

use superstep::{
    AgentState, CheckpointError, CheckpointRecord, Checkpointer, CompiledStateGraph, EchoAgent, FieldRecord,
    FieldValue, Lease, ListQuery, MemorySaver, Message, START, SavedField, StateGraph,
};

use crate::Seal;
use crate::rows::{
    Found, KnownShapes, Outline, OutlineInterval, Raw, RawPending, RowCodec, id_bytes, needed_without, outlines_without,
};

/// The first byte says which part the others are: of a checkpoint's row, its body or its outline; what a task wrote; or
/// of a record, its control part, its shape or its fields. Everything else is as it should be. There is data or an
/// error, and no more data than there was.
pub fn checkpoint_target(data: &[u8]) {
    let Some((part, data)) = data.split_first() else { return };
    match part % 6 {
        0 => look(&Seal::new(), Part::Body, data),
        1 => look(&Seal::new(), Part::Outline, data),
        2 => look(&Seal::new(), Part::Written, data),
        3 => go_on(|record| record.with_control(data.into())),
        4 => go_on(|record| record.with_shape(data.into())),
        _ => go_on(|record| {
            let whole = |field: &FieldRecord| FieldRecord::new(field.name(), FieldValue::Whole(data.into()));
            let fields = record.fields().iter().map(whole).collect();
            record.with_fields(fields)
        }),
    }
}

#[derive(Clone, Copy)]
enum Part {
    Body,
    Outline,
    Written,
}

/// The two rows hold fewer values without the part.
const OWN: usize = 100;

/// Reads two rows with one part replaced, in all the ways in which rows are read.
fn look(seal: &Seal, part: Part, data: &[u8]) {
    let codec = RowCodec { seal, thread: "t", namespace: "" };
    let raw = forged(codec, part, data).expect("the other parts are sound");
    let Ok(found) = raw.open(codec) else { return };
    for id in &found.listed {
        let Ok(saved) = found.saved(codec, *id) else { continue };
        let values: usize = saved.fields().iter().map(|field| 1 + field.tail().len()).sum();
        assert!(values <= data.len() + OWN, "{values} values of {} bytes", data.len());
    }
    let _ = found.checkpoint(codec, None);
    remove(&found);
}

/// As when a row gets an outline, and when the row below it goes away.
fn remove(found: &Found) {
    let [newer, older] = found.listed[..] else { return };
    let often = OutlineInterval { every: 1, many: 1, many_long: 1 };
    let _ = found.read_rows.to_gather(newer, often);
    let _ = found.read_rows.outline(newer, often);
    let removed = HashSet::from([older]);
    let _ = needed_without(&found.read_rows, &removed, &[newer]);
    let _ = outlines_without(&found.read_rows, &removed, vec![newer]);
}

/// The last two rows of a thread with one answer, the newer with an outline.
fn forged(codec: RowCodec<'_>, part: Part, data: &[u8]) -> Result<Raw, CheckpointError> {
    let [older, newer] = records();
    let (base, id) = (older.id(), newer.id());
    let mut raw = Raw { head: Some(id_bytes(id).to_vec()), ..Raw::default() };
    for record in [older, newer] {
        let row = codec.row(record, &KnownShapes::default())?;
        raw.listed.push(id_bytes(row.id).to_vec());
        raw.shapes.push((row.shape.to_vec(), row.shape_body.clone().unwrap_or_default()));
        raw.checkpoints.push(row.stored());
    }
    let newest = &mut raw.checkpoints[1];
    match part {
        Part::Body => newest.body = codec.forged_body(newest, data)?,
        Part::Outline => newest.outline = Some(codec.forged_outline(id, data)),
        Part::Written => {
            newest.outline = Some(codec.outline(id, &Outline::default())?.sealed);
            let _ =
                codec.inlined(id, Some(base), data).map(|rows| rows.iter().all(|row| codec.open_pending(row).is_ok()));
            let row = codec.forged_pending(base, id, data);
            let [checkpoint, consumed] = [base, id].map(|id| id_bytes(id).to_vec());
            let task = row.task.as_u128().to_be_bytes().to_vec();
            raw.pending.push(RawPending { checkpoint, task, consumed: Some(consumed), body: row.body });
        }
    }
    Ok(raw)
}

/// Reads a thread whose latest record was changed, and resumes it.
fn go_on(change: impl FnOnce(CheckpointRecord) -> CheckpointRecord) {
    let [older, newer] = records().clone();
    let newer = change(newer);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs nothing");
    runtime.block_on(async {
        let saver = MemorySaver::new();
        let claim = saver.claim("t", "", None).await.expect("nobody else is here");
        for record in [older, newer] {
            saver.put(Lease::new("t", "", claim.epoch), record).await.expect("a saver looks into no record");
        }
        let app = echo(saver);
        let _ = app.thread("t").history().await;
        let _ = app.invoke(says("two")).thread("t").await;
    });
}

fn echo(saver: MemorySaver) -> CompiledStateGraph<AgentState> {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("echo", EchoAgent).add_edge(START, "echo");
    graph.checkpointer(saver).compile().expect("the graph has no mistakes")
}

fn says(text: &str) -> AgentState {
    AgentState { messages: vec![Message::user(text)] }
}

/// The records of a thread after one answer, as they were saved: what it began with, and its last.
fn records() -> &'static [CheckpointRecord; 2] {
    static RECORDS: OnceLock<[CheckpointRecord; 2]> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let saver = MemorySaver::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs nothing");
        let saved = runtime.block_on(async {
            echo(saver.clone()).invoke(says("one")).thread("t").await.expect("an echo does not fail");
            saver.list("t", "", &ListQuery::new()).await.expect("memory can be read")
        });
        let [newer, older] = [&saved[0], &saved[saved.len() - 1]].map(|saved| {
            let field = |field: &SavedField| {
                let writes = field.whole().into_iter().chain(field.tail()).cloned().collect();
                FieldRecord::new(field.name(), FieldValue::Tail(writes))
            };
            saved.record().clone().with_fields(saved.fields().iter().map(field).collect())
        });
        let before = Some(older.id());
        [older, newer.with_parent(before).with_base(before).with_head(before)]
    })
}
