//! How clauses of stores and caches say what must hold.

use std::fmt::Debug;

use super::{Checked, ensure, equal};

/// Fails the clause unless both are equal.
#[expect(clippy::needless_pass_by_value, reason = "both are mostly made for the comparison")]
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: T, wanted: T) -> Checked {
    equal(what, &found, &wanted)
}

/// Fails the clause unless it is so.
pub(super) fn holds(what: &str, it_is_so: bool) -> Checked {
    ensure!(it_is_so, "it does not hold that {what}");
    Ok(())
}

/// Tries each named function on what `maker` makes.
macro_rules! clauses {
    ($report:ident, $maker:ident: $($clause:path),* $(,)?) => {
        $(
            let name = stringify!($clause);
            let maker = std::sync::Arc::clone(&$maker);
            let name = name.rsplit("::").next().unwrap_or(name);
            $report.check(name, async move { $clause(&*maker).await }).await;
        )*
    };
}
pub(super) use clauses;
