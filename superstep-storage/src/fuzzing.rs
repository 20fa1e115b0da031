//! What the fuzz targets and the tests of sealing reach inside for. Not part of the public API: it changes without
//! notice.
//!
//! A target is a function of bytes that panics if something is wrong. `fuzz/` feeds it with what it makes up, the
//! tests with every file of `fuzz/corpus`.

mod checkpoints;

use serde_json::{Deserializer, Value};
use superstep::{Clause, Comparison, Condition, FieldPath, Filter};

use crate::Seal;
use crate::seal::{Context, Flags};

pub use checkpoints::checkpoint_target;

/// Seals a body as if it were a compressed payload.
pub fn seal_as_compressed(seal: &Seal, context: &[&[u8]], body: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::new();
    seal.enclose(Context(context), Flags::COMPRESSED, body, &mut sealed);
    sealed
}

/// Target `open`: bytes from a disk give a value or an error; whole bytes give the value that was sealed.
///
/// The bytes are opened as they are, and as the compressed body of a value that is otherwise right.
pub fn open_target(data: &[u8]) {
    let context: &[&[u8]] = &[b"thread", b"checkpoint"];
    for seal in seals() {
        if let Ok(payload) = seal.open(context, data) {
            reopens(&seal, context, &payload);
        }
        if let Ok(payload) = seal.open(context, &seal_as_compressed(&seal, context, data)) {
            assert!(payload.len() <= LIMIT, "{} bytes are more than the limit", payload.len());
        }
        reopens(&seal, context, data);
    }
}

fn reopens(seal: &Seal, context: &[&[u8]], payload: &[u8]) {
    let sealed = seal.seal(context, payload);
    assert_eq!(seal.open(context, &sealed).as_deref(), Ok(payload), "sealed with {seal:?}");
}

/// What a seal of a target gives for a compressed body, at most.
const LIMIT: usize = 1 << 20;

/// A seal of every kind that is compiled in.
fn seals() -> Vec<Seal> {
    let seals = vec![Seal::new()];
    #[cfg(feature = "compression")]
    let seals = both(seals, |seal| seal.decompress_limit(LIMIT).compress(crate::Compression::Lz4));
    #[cfg(feature = "encryption")]
    let seals = both(seals, |seal| seal.encrypt(crate::Keys::new("fuzz", crate::Key::from([7; 32]))).allow_plain());
    seals
}

#[cfg(any(feature = "compression", feature = "encryption"))]
fn both(mut seals: Vec<Seal>, with: fn(Seal) -> Seal) -> Vec<Seal> {
    seals.extend(seals.clone().into_iter().map(with));
    seals
}

/// Target `filter`: a filter and a value in JSON, one after the other; the filter is refused, or answers for the value
/// what its conditions answer one by one.
pub fn filter_target(data: &[u8]) {
    let mut documents = Deserializer::from_slice(data).into_iter::<Value>();
    let (Some(Ok(filter)), Some(Ok(value))) = (documents.next(), documents.next()) else { return };
    let Ok(filter) = Filter::parse(&filter) else { return };
    assert_eq!(filter.accepts(&value), answer(&filter, &value), "{filter:?} for {value}");
}

fn answer(filter: &Filter, value: &Value) -> bool {
    filter.clauses().iter().all(|clause| match clause {
        Clause::Condition(Condition { path, comparison, value: operand, .. }) => {
            agrees_with_its_opposite(path, operand, value);
            alone(*comparison, path, operand).accepts(value)
        }
        Clause::Any(filters) => filters.iter().any(|filter| answer(filter, value)),
        Clause::Not(filter) => !answer(filter, value),
    })
}

fn alone(comparison: Comparison, path: &FieldPath, operand: &Value) -> Filter {
    let of = match comparison {
        Comparison::Matches => Filter::matching,
        Comparison::Eq => Filter::eq,
        Comparison::Ne => Filter::ne,
        Comparison::Gt => Filter::gt,
        Comparison::Gte => Filter::gte,
        Comparison::Lt => Filter::lt,
        Comparison::Lte => Filter::lte,
        Comparison::In => return Filter::one_of(path.clone(), operand.as_array().cloned().unwrap_or_default()),
    };
    of(path.clone(), operand.clone())
}

fn agrees_with_its_opposite(path: &FieldPath, operand: &Value, value: &Value) {
    let holds = |of: fn(FieldPath, Value) -> Filter| of(path.clone(), operand.clone()).accepts(value);
    let (greater, less) = (holds(Filter::gt), holds(Filter::lt));
    assert_ne!(holds(Filter::eq), holds(Filter::ne), "`$eq` and `$ne` of {path:?} and {operand} for {value}");
    assert!(!(greater && less), "`$gt` and `$lt` of {path:?} and {operand} for {value}");
    assert!(!greater || holds(Filter::gte), "`$gt` without `$gte` of {path:?} and {operand} for {value}");
    assert!(!less || holds(Filter::lte), "`$lt` without `$lte` of {path:?} and {operand} for {value}");
}
