//! Inputs that were saved and will be merged into the state next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::checkpoint::{CheckpointRecord, Epoch, Lease, Source};
use crate::id::CheckpointId;
use crate::value::Blob;

/// The control parts of checkpoints that hold an input, until the next checkpoint of their namespace: its tails hold the
/// same bytes, and need not be saved again. A help only: what is not here is saved twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs(Arc<Mutex<Waiting>>);

/// Inputs by thread and namespace.
#[derive(Debug, Default)]
struct Waiting {
    inputs: HashMap<(String, String), Input>,
    /// How many bytes they hold together.
    bytes: usize,
}

#[derive(Debug)]
struct Input {
    /// Of whoever saved it: others may find another row of that id in the thread, if it was deleted and made again.
    epoch: Epoch,
    id: CheckpointId,
    control: Blob,
}

impl Inputs {
    /// So many bytes may wait between an input and its first step; at more, those before are forgotten.
    const MOST: usize = 16 << 20;
    /// Shorter ones are not worth a reference, longer ones not the memory.
    const WORTH_KEEPING: std::ops::RangeInclusive<usize> = 64..=64 << 10;

    /// What the base of a checkpoint holds, if it is an input; remembers the checkpoint's own.
    pub(crate) fn take(&self, lease: Lease<'_>, record: &CheckpointRecord) -> Blob {
        let is_input = record.source == Source::Input && Self::WORTH_KEEPING.contains(&record.control.len());
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_input && waiting.inputs.is_empty() {
            return Blob::default();
        }
        let place = (lease.thread.to_owned(), lease.namespace.to_owned());
        let is_base = |input: &Input| input.epoch == lease.epoch && Some(input.id) == record.base;
        let before = waiting.take(&place).filter(is_base);
        if is_input {
            waiting.add(place, Input { epoch: lease.epoch, id: record.id, control: record.control.clone() });
        }
        before.map(|input| input.control).unwrap_or_default()
    }
}

impl Waiting {
    fn take(&mut self, place: &(String, String)) -> Option<Input> {
        let ((thread, namespace), input) = self.inputs.remove_entry(place)?;
        self.bytes -= Self::size(&thread, &namespace, &input.control);
        Some(input)
    }

    fn add(&mut self, place: (String, String), input: Input) {
        let size = Self::size(&place.0, &place.1, &input.control);
        if self.bytes + size > Inputs::MOST {
            *self = Self::default();
        }
        self.bytes += size;
        self.inputs.insert(place, input);
    }

    /// Names count too: they may be long.
    fn size(thread: &str, namespace: &str, input: &Blob) -> usize {
        thread.len() + namespace.len() + input.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(len: usize) -> Input {
        let (epoch, id) = (Epoch::from_u64(1), CheckpointId::from_u128(1));
        Input { epoch, id, control: Blob::from(&vec![0; len][..]) }
    }

    fn place(number: usize) -> (String, String) {
        (format!("{number:05}"), String::new())
    }

    #[test]
    fn inputs_hold_a_bounded_number_of_bytes() {
        let mut waiting = Waiting::default();
        for number in 0..2000 {
            waiting.add(place(number), input(64 << 10));
            assert!(waiting.bytes <= Inputs::MOST);
            let held: usize = waiting.inputs.iter().map(|((t, n), input)| Waiting::size(t, n, &input.control)).sum();
            assert_eq!(held, waiting.bytes);
        }
        assert!(waiting.take(&place(0)).is_none(), "the first was forgotten");
        assert!(waiting.take(&place(1999)).is_some());
    }

    #[test]
    fn what_was_taken_does_not_count() {
        let mut waiting = Waiting::default();
        for number in 0..10 {
            waiting.add(place(number), input(100));
        }
        for number in 0..10 {
            waiting.take(&place(number)).unwrap();
        }
        assert_eq!(waiting.bytes, 0);
    }
}
