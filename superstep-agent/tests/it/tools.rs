//! Functions as tools.

use serde_json::json;
use superstep_agent::{Json, Tool, ToolError, tool};

/// Adds two numbers.
///
/// Use it for sums.
#[tool]
fn add(
    /// The first.
    a: i64,
    #[serde(default)] b: i64,
) -> i64 {
    a + b
}

/// Looks up words.
#[tool(name = "dictionary", return_direct)]
async fn look_up(words: Vec<String>, language: Option<String>) -> Result<Json<Vec<usize>>, ToolError> {
    if words.is_empty() {
        return Err(ToolError::invalid("no words"));
    }
    let _ = language;
    Ok(Json(words.iter().map(String::len).collect()))
}

/// The body of a function in one line was called a block with unnecessary braces.
#[rustfmt::skip]
#[deny(unused_braces)]
mod in_one_line {
    /// Doubles a number.
    #[superstep_agent::tool]
    pub(super) fn double(number: i64) -> i64 { number * 2 }
}

#[test]
fn a_tool_in_one_line_is_compiled_without_a_warning() {
    assert_eq!(in_one_line::double::run(21), 42);
}

#[test]
fn a_function_tells_the_model_its_doc_comments_and_arguments() {
    let spec = add.spec();
    assert_eq!((&*spec.name, &*spec.description), ("add", "Adds two numbers.\n\nUse it for sums."));
    let expected = json!({
        "type": "object",
        "properties": {
            "a": { "type": "integer", "format": "int64", "description": "The first." },
            "b": { "type": "integer", "format": "int64", "default": 0 },
        },
        "required": ["a"],
    });
    assert_eq!(spec.parameters, expected);
    assert!(!add.returns_directly());
    assert_eq!(look_up.spec().name, "dictionary");
    assert_eq!(look_up.spec().parameters["required"], json!(["words"]));
    assert!(look_up.returns_directly());
}

#[tokio::test]
async fn a_tool_is_still_a_function() {
    assert_eq!(add::run(1, 2), 3);
    assert_eq!(look_up::run(vec!["tea".into()], None).await.unwrap().0, [3]);
}

mod types_of_ones_own {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    pub(super) struct Context {
        pub(super) room: String,
    }
}

/// Finds a room.
#[tool]
fn find(context: types_of_ones_own::Context) -> String {
    context.room
}

/// `Context` without a path is the run's, and is refused without `#[inject]`.
#[test]
fn a_type_of_ones_own_may_be_named_like_what_the_run_gives() {
    assert_eq!(find::run(types_of_ones_own::Context { room: "blue".into() }), "blue");
    assert_eq!(find.spec().parameters["required"], json!(["context"]));
}

mod named_alike {
    use superstep_agent::tool;

    /// Finds a city.
    #[tool]
    pub fn city(mut name: String) -> String {
        name.push('!');
        name
    }

    /// Knows the weather.
    #[tool]
    pub async fn weather(
        /// Where.
        city: String,
        r#type: Option<String>,
    ) -> String {
        format!("{city} {}", r#type.unwrap_or_default())
    }
}

/// A tool is a value, and the argument of another tool could not be named like it.
#[tokio::test]
async fn an_argument_may_have_the_name_of_a_tool() {
    use named_alike::{city, weather};
    assert_eq!(city::run("Oslo".into()), "Oslo!");
    assert_eq!(weather::run("Oslo".into(), None).await, "Oslo ");
    let parameters = superstep_agent::Tool::spec(&weather).parameters;
    assert_eq!(parameters["properties"]["city"]["description"], "Where.");
    assert_eq!(parameters["required"], serde_json::json!(["city"]));
}
