//! Fields that a node does not see: those that it does not name, and private ones.
//!
//! The node is given a copy of the state in which they are empty. What it gives back is compared with that copy, so what
//! it was not shown stays as it is. Only nodes from which something is hidden pay for it.

use std::sync::Arc;

use crate::call::{AnyNode, CacheKeyFn, Call, NodeFuture};
use crate::plan::NodePlan;
use crate::state::erased::Snapshot;
use crate::state::{FieldSpec, Given};

/// Lets a node that names no fields see all but the private ones.
pub(super) fn narrow(node: &mut NodePlan, private: &[usize], fields: &[FieldSpec]) {
    if node.reads.is_none() && !private.is_empty() {
        node.reads = Some((0..fields.len()).filter(|field| !private.contains(field)).collect());
    }
}

/// Hides what a node is not to see.
pub(super) fn hide(node: &mut NodePlan, fields: &[FieldSpec]) {
    let Some(reads) = &node.reads else { return };
    let is_hidden = |field: &usize| !reads.contains(field) && !fields[*field].kind().is_managed();
    let hidden: Arc<[usize]> = (0..fields.len()).filter(is_hidden).collect();
    if !hidden.is_empty() {
        if let Some(key) = node.cache.as_mut().and_then(|policy| policy.key.as_mut()) {
            *key = hiding_key(key.clone(), hidden.clone());
        }
        if !node.run.narrows {
            node.run = hiding(node.run.clone(), hidden);
        }
    }
}

fn hiding(node: AnyNode, hidden: Arc<[usize]>) -> AnyNode {
    let inner = node.run.clone();
    let run = move |call: Call<'_>| -> NodeFuture { masked_call(call, &hidden, |call| inner(call)) };
    AnyNode { run: Arc::new(run), ..node }
}

/// The key of a result is made of what the node sees.
fn hiding_key(key: CacheKeyFn, hidden: Arc<[usize]>) -> CacheKeyFn {
    Arc::new(move |call: &Call<'_>| {
        let mut none = || unreachable!("a cache key has no context");
        masked_call(call.with_context(&mut none), &hidden, |call| key(&call))
    })
}

/// Makes the call with a state in which these fields are empty.
fn masked_call<T>(mut call: Call<'_>, hidden: &[usize], make: impl FnOnce(Call<'_>) -> T) -> T {
    let ty = call.ty;
    let masked = |state: &Snapshot| {
        let mut state = state.clone();
        hidden.iter().for_each(|field| ty.reset(&mut state, *field));
        state
    };
    match call.input {
        Given::State(state) => {
            let state = masked(state);
            make(call.seeing(Given::State(&state), None))
        }
        Given::Sent(payload) => {
            let state = call.state.map(masked);
            make(call.seeing(Given::Sent(payload), state.as_ref()))
        }
    }
}
