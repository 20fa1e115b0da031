//! The suite for checkpointers: give back what was given, fence whoever was overtaken, forget only what may go.

mod difference;
mod draft;
mod fencing;
mod graphs;
mod housekeeping;
mod listing;
mod model;

mod names;
mod order;
mod pending;
mod prune;
mod racing;
mod stage;
mod values;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use model::model;

use super::{Checked, Report};
use crate::checkpoint::Checkpointer;
use stage::Stage;

type Trying = Pin<Box<dyn Future<Output = Checked> + Send>>;

/// Tries all clauses, each on an empty checkpointer of its own.
///
/// The suite makes the records itself; a checkpointer is all that it wants. Expiry has clauses of its own,
/// [`expiry`], and [`model`] plays random calls.
///
/// ```
/// use superstep::MemorySaver;
/// use superstep::conformance::checkpointer;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// checkpointer::run(|| async { MemorySaver::new() }).await.assert();
/// # }
/// ```
pub async fn run<C, F>(make: impl Fn() -> F) -> Report
where
    C: Checkpointer,
    F: Future<Output = C>,
{
    let mut report = Report::default();
    for (name, clause) in CLAUSES {
        let stage = Stage::new(Arc::new(make().await));
        report.check(name, clause(stage)).await;
    }
    report
}

/// Tries the clauses on threads that expire: `make` gives an empty checkpointer whose threads live for so long.
///
/// It waits for a few short times to live to pass.
///
/// ```
/// use superstep::MemorySaver;
/// use superstep::conformance::checkpointer;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// checkpointer::expiry(|ttl| async move { MemorySaver::new().ttl(ttl) }).await.assert();
/// # }
/// ```
pub async fn expiry<C, F>(make: impl Fn(Duration) -> F) -> Report
where
    C: Checkpointer,
    F: Future<Output = C>,
{
    let mut report = Report::default();
    for (name, ttl, clause) in EXPIRY {
        let stage = Stage::new(Arc::new(make(*ttl).await));
        report.check(name, clause(stage)).await;
    }
    report
}

/// Clauses by the names of their functions.
macro_rules! clauses {
    ($($module:ident: $($clause:ident),+ $(,)?;)+) => {
        &[$($((stringify!($clause), |stage| Box::pin($module::$clause(stage))),)+)+]
    };
}

const CLAUSES: &[(&str, fn(Stage) -> Trying)] = clauses! {
    values:
        a_thread_that_nobody_wrote_to_is_empty,
        a_checkpoint_is_given_back_as_it_was_saved,
        every_kind_of_metadata_is_given_back,
        namespaces_of_a_thread_do_not_mix,
        threads_with_the_same_checkpoint_ids_do_not_mix,
        a_checkpoint_inherits_the_fields_that_it_does_not_hold,
        an_absent_field_stays_absent_until_it_is_written_again,
        tails_grow_over_hundreds_of_steps,
        a_whole_value_ends_a_tail,
        forks_never_see_values_of_each_other,
        a_claim_gives_the_checkpoint_that_was_asked_for,
        a_checkpoint_without_its_base_is_refused,
        a_checkpoint_saved_again_changes_nothing;
    pending:
        writes_are_given_back_in_the_order_of_paths,
        of_ordinary_writes_the_first_stay,
        errors_questions_and_answers_are_replaced,
        what_a_later_record_leaves_out_stays,
        writes_of_old_checkpoints_can_be_added,
        writes_for_a_checkpoint_that_is_not_there_are_refused,
        writes_that_come_with_a_checkpoint_belong_to_its_base,
        writes_that_come_with_a_refused_checkpoint_are_not_kept,
        writes_of_a_base_are_not_inherited;
    listing:
        the_newest_comes_first,
        a_limit_and_a_place_to_begin_page_through_all,
        every_filter_is_honoured,
        filters_hold_together,
        metadata_is_compared_literally,
        a_listed_checkpoint_is_whole;
    fencing:
        who_claims_later_has_a_greater_epoch,
        an_older_claimant_can_write_nothing,
        a_claim_of_one_namespace_fences_all,
        a_claim_fences_no_other_thread,
        a_checkpoint_must_go_on_from_the_latest,
        a_checkpoint_must_be_newer_than_the_latest,
        an_unclaimed_thread_takes_no_writes,
        deleting_a_thread_fences_its_claimants,
        a_thread_made_again_does_not_know_its_old_claimants;
    racing:
        many_tasks_write_to_many_threads,
        claimants_of_one_thread_make_a_single_rising_chain,
        one_of_many_with_one_lease_wins_each_head,
        pruning_beside_a_writer_takes_nothing_from_it;
    order:
        saves_that_nobody_waits_for_take_effect_in_order,
        a_save_whose_predecessor_failed_fails_too;
    housekeeping:
        threads_are_listed_by_name_and_in_pages,
        only_threads_with_checkpoints_are_listed,
        a_copy_is_equal_and_independent,
        a_copy_needs_a_free_name_and_something_to_copy,
        a_copy_fences_who_claimed_its_name_before,
        a_deleted_thread_is_gone_and_others_stay,
        a_deleted_run_takes_only_its_checkpoints,
        values_outlive_the_run_that_wrote_them,
        a_thread_goes_with_its_last_run,
        what_a_deleted_run_wrote_is_not_taken_up_again,
        answers_go_with_the_run_that_was_given_them,
        writes_that_a_deleted_run_did_not_take_up_stay,
        a_sound_checkpointer_has_nothing_to_sweep;
    prune:
        the_last_ones_stay,
        the_recent_ones_stay,
        what_was_made_at_the_moment_stays,
        the_latest_always_stays,
        what_stays_keeps_its_values_and_writes,
        checkpoints_of_subgraphs_stay_with_those_they_ran_under,
        subgraphs_that_run_stay,
        a_thread_goes_on_after_pruning,
        a_pruned_checkpoint_takes_no_writes;
    names:
        hostile_thread_names_are_literal,
        hostile_namespaces_are_literal,
        hostile_run_ids_are_literal,
        hostile_metadata_is_literal,
        hostile_fields_and_paths_are_literal;
    graphs:
        a_question_waits_and_is_answered,
        an_older_checkpoint_is_forked,
        parallel_tasks_keep_what_finished,
        subgraphs_pause_and_go_on,
        a_thread_is_changed_by_hand;
};

const MOMENT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_hours(24);

const EXPIRY: &[(&str, Duration, fn(Stage) -> Trying)] = &[
    ("a_thread_expires", MOMENT, |stage| Box::pin(housekeeping::a_thread_expires(stage))),
    ("an_expired_thread_can_be_made_again", MOMENT, |stage| {
        Box::pin(housekeeping::an_expired_thread_can_be_made_again(stage))
    }),
    ("a_claim_without_checkpoints_expires", MOMENT, |stage| {
        Box::pin(housekeeping::a_claim_without_checkpoints_expires(stage))
    }),
    ("a_claim_is_a_use", housekeeping::WHILE, |stage| Box::pin(housekeeping::a_claim_is_a_use(stage))),
    ("a_thread_that_is_used_stays", LONG, |stage| Box::pin(housekeeping::a_thread_that_is_used_stays(stage))),
];
