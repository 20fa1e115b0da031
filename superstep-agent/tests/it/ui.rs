//! Every refusal of `#[tool]` that speaks of its arguments, and its words.
#[test]
fn refusals() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
