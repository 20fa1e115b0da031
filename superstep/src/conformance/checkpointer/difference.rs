//! Comparing what came back with what was saved.
//!
//! The fields and writes inside a record are not compared, since they may be left out there; nor is its `head`,
//! a condition of saving it.

use super::super::{Broken, Checked, short};
use crate::checkpoint::{SavedCheckpoint, SavedField, TaskRecord};

pub(super) fn same(what: &str, found: Option<&SavedCheckpoint>, expected: Option<&SavedCheckpoint>) -> Checked {
    match (found, expected) {
        (None, None) => Ok(()),
        (Some(found), None) => {
            Err(Broken(format!("{what}: checkpoint {} is there and should not be", found.record.id)))
        }
        (None, Some(expected)) => Err(Broken(format!("{what}: checkpoint {} is not there", expected.record.id))),
        (Some(found), Some(expected)) => match difference(found, expected) {
            None => Ok(()),
            Some(why) => Err(Broken(format!("{what}, checkpoint {}: {why}", found.record.id))),
        },
    }
}

pub(super) fn same_list(what: &str, found: &[SavedCheckpoint], expected: &[SavedCheckpoint]) -> Checked {
    let ids = |list: &[SavedCheckpoint]| list.iter().map(|saved| saved.record.id).collect::<Vec<_>>();
    super::super::equal(what, &ids(found), &ids(expected))?;
    found.iter().zip(expected).try_for_each(|(found, expected)| same(what, Some(found), Some(expected)))
}

/// Gives back the first member that differs.
macro_rules! compare {
    ($found:expr, $expected:expr; $($member:ident),+) => {
        $(if $found.$member != $expected.$member {
            let name = stringify!($member);
            return Some(format!("its {name} is {} instead of {}", short(&$found.$member), short(&$expected.$member)));
        })+
    };
}

fn difference(found: &SavedCheckpoint, expected: &SavedCheckpoint) -> Option<String> {
    let (record, wanted) = (&found.record, &expected.record);
    compare!(record, wanted; format, id, parent, base, run, source, step, created_at, metadata, parents, shape, control);
    fields_differ(&found.fields, &expected.fields).or_else(|| writes_differ(&found.writes, &expected.writes))
}

fn fields_differ(found: &[SavedField], expected: &[SavedField]) -> Option<String> {
    let names = |fields: &[SavedField]| {
        let mut names: Vec<String> = fields.iter().map(|field| field.name.to_string()).collect();
        names.sort_unstable();
        names
    };
    for field in expected {
        let Some(known) = found.iter().find(|known| known.name == field.name) else { continue };
        if (&known.whole, &known.tail) != (&field.whole, &field.tail) {
            let (is, should) = (short(&(&known.whole, &known.tail)), short(&(&field.whole, &field.tail)));
            return Some(format!("field `{}` is {is} instead of {should}", field.name));
        }
    }
    let (is, should) = (names(found), names(expected));
    (is != should).then(|| format!("it has the fields {} instead of {}", short(&is), short(&should)))
}

fn writes_differ(found: &[TaskRecord], expected: &[TaskRecord]) -> Option<String> {
    let tasks = |list: &[TaskRecord]| list.iter().map(|task| task.task).collect::<Vec<_>>();
    let (is, should) = (tasks(found), tasks(expected));
    if is != should {
        return Some(format!("the writes are of the tasks {} instead of {}", short(&is), short(&should)));
    }
    found.iter().zip(expected).find_map(|(found, expected)| {
        let why = task_differs(found, expected)?;
        Some(format!("task {}: {why}", found.task))
    })
}

fn task_differs(found: &TaskRecord, expected: &TaskRecord) -> Option<String> {
    compare!(found, expected; run, path, writes, error, handled, interrupts, resume);
    None
}
