//! What chat completions are asked.

use serde_json::{Value, json};

use crate::message::Listener;
use crate::model::{OutputSchema, ToolChoice};
use crate::provider::http::Fault;
use crate::provider::schema;
use crate::provider::setup::{Asked, Setup, merge};
use crate::tool::ToolSpec;

pub(super) fn body(setup: &Setup, asked: &Asked, streaming: bool) -> Result<Value, Fault> {
    let request = &asked.request;
    let messages = Listener { provider: Some(&asked.provider) }.hear(&request.messages);
    let messages = messages.map_err(|error| Fault::invalid(format!("message {}: {}", error.place(), error.words())))?;
    let mut body = json!({ "model": setup.model, "messages": messages });
    if streaming {
        body["stream"] = json!(true);
        body["stream_options"] = json!({ "include_usage": true });
    }
    add_tools(&mut body, asked);
    add_settings(&mut body, setup, asked);
    if let Some(output) = &request.output {
        body["response_format"] = response_format(output);
    }
    merge(&mut body, request.settings.extra.clone());
    Ok(body)
}

fn add_tools(body: &mut Value, asked: &Asked) {
    let request = &asked.request;
    if request.tools.is_empty() {
        return;
    }
    body["tools"] = request.tools.iter().map(tool).collect();
    match &request.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::None => body["tool_choice"] = json!("none"),
        ToolChoice::Required => body["tool_choice"] = json!("required"),
        ToolChoice::Tool(name) => body["tool_choice"] = json!({ "type": "function", "function": { "name": name } }),
    }
    if let Some(allowed) = request.parallel_tool_calls {
        body["parallel_tool_calls"] = json!(allowed);
    }
}

fn tool(spec: &ToolSpec) -> Value {
    let mut function = json!({ "name": spec.name, "description": spec.description, "parameters": spec.parameters });
    merge(&mut function, spec.extra.clone());
    json!({ "type": "function", "function": function })
}

fn add_settings(body: &mut Value, setup: &Setup, asked: &Asked) {
    let settings = &asked.request.settings;
    if let Some(temperature) = settings.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(top_p) = settings.top_p {
        body["top_p"] = json!(top_p);
    }
    if let Some(tokens) = settings.max_tokens {
        // OpenAI's newer models refuse the old name, most other servers do not know the new one.
        let name = if setup.connection.is_home() { "max_completion_tokens" } else { "max_tokens" };
        body[name] = json!(tokens);
    }
    if !settings.stop.is_empty() {
        body["stop"] = json!(settings.stop);
    }
}

fn response_format(output: &OutputSchema) -> Value {
    let strict = schema::strict(&output.schema);
    let is_strict = strict.is_some();
    let schema = strict.unwrap_or_else(|| schema::plain(&output.schema));
    let name = schema::name(&output.name);
    json!({ "type": "json_schema", "json_schema": { "name": name, "schema": schema, "strict": is_strict } })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Setup, body};
    use crate::model::ChatRequest;
    use crate::provider::http::Connection;
    use crate::provider::openai::HOME;

    #[test]
    fn the_limit_of_tokens_has_two_names() {
        let limit = |connection: Connection| {
            let setup = Setup::new("m".into(), connection);
            let asked = setup.complete(ChatRequest::from("hi").max_tokens(7));
            let body = body(&setup, &asked, false).unwrap();
            [body["max_completion_tokens"].clone(), body["max_tokens"].clone()]
        };
        assert_eq!(limit(Connection::new(HOME)), [json!(7), json!(null)]);
        assert_eq!(limit(Connection::new(HOME).base_url("http://localhost:11434/v1")), [json!(null), json!(7)]);
    }
}
