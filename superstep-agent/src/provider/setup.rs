//! What all providers are set up with.

use serde_json::Value;
use superstep::JsonMap;

use super::http::{Connection, Fault, Home};
use super::schema;
use crate::model::{ChatRequest, ModelError, OutputSchema, Settings, ToolChoice};
use crate::tool::ToolSpec;

/// A model at a provider.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) model: String,
    pub(crate) connection: Connection,
    pub(crate) settings: Settings,
    pub(crate) provider: Option<String>,
    pub(crate) output_by_tool: bool,
}

impl Setup {
    pub(crate) fn new(model: String, connection: Connection) -> Self {
        Self { model, connection, settings: Settings::default(), provider: None, output_by_tool: false }
    }

    pub(crate) fn from_env(model: String, home: Home) -> Result<Self, ModelError> {
        match Connection::from_env(home) {
            Ok(connection) => Ok(Self::new(model, connection)),
            Err(fault) => Err(fault.into_error(&model)),
        }
    }

    /// Under which name its answers are kept.
    pub(crate) fn provider(&self) -> &str {
        self.provider.as_deref().unwrap_or_else(|| self.connection.provider())
    }

    /// The request with this model's settings where it has none of its own, and the tool that takes the answer, if it
    /// is to come by a tool.
    pub(crate) fn complete(&self, request: ChatRequest) -> Asked {
        let mut request = ChatRequest { settings: over(&self.settings, request.settings), ..request };
        let by_tool = if self.output_by_tool { request.output.take() } else { None };
        let answer_tool = by_tool.map(|output| take_answer_by_tool(&mut request, &output));
        Asked { request, provider: self.provider().to_owned(), answer_tool }
    }

    /// A fault as an error of this model.
    pub(crate) fn error(&self, fault: Fault) -> ModelError {
        fault.into_error(&self.model)
    }
}

/// A request as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) request: ChatRequest,
    pub(crate) provider: String,
    pub(crate) answer_tool: Option<String>,
}

/// The settings of a request over those of the model.
fn over(base: &Settings, request: Settings) -> Settings {
    let mut extra = Value::Object(base.extra.clone());
    merge(&mut extra, request.extra);
    let Value::Object(extra) = extra else { unreachable!("an object stays one when fields are merged into it") };
    Settings {
        temperature: request.temperature.or(base.temperature),
        top_p: request.top_p.or(base.top_p),
        max_tokens: request.max_tokens.or(base.max_tokens),
        stop: if request.stop.is_empty() { base.stop.clone() } else { request.stop },
        extra,
    }
}

/// Adds a tool whose arguments are the answer, and makes the model call it, or another one first.
fn take_answer_by_tool(request: &mut ChatRequest, output: &OutputSchema) -> String {
    let name = schema::name(&output.name);
    let spec = ToolSpec::new(&*name, "Takes the final answer. Call it once, when you are done.")
        .parameters(schema::plain(&output.schema));
    request.tool_choice = if request.tools.is_empty() { ToolChoice::Tool(name.clone()) } else { ToolChoice::Required };
    request.tools.push(spec);
    name
}

/// What a user says at the end of a conversation in which the model has the last word, for providers that refuse that.
#[cfg(any(feature = "anthropic", feature = "gemini"))]
pub(crate) fn last_word(asked: &Asked) -> &'static str {
    let has_form = asked.request.output.is_some() || asked.answer_tool.is_some();
    if has_form { "Give that answer in the asked form." } else { "Go on." }
}

/// Puts fields into an object; objects in objects are merged, and tools are added to those that are there.
pub(crate) fn merge(into: &mut Value, fields: JsonMap) {
    let Value::Object(object) = into else {
        *into = Value::Object(fields);
        return;
    };
    for (name, value) in fields {
        match (object.get_mut(&name), value) {
            (Some(old @ Value::Object(_)), Value::Object(new)) => merge(old, new),
            (Some(Value::Array(old)), Value::Array(new)) if name == "tools" => old.extend(new),
            (_, value) => drop(object.insert(name, value)),
        }
    }
}

/// The constructors and options that every provider has.
macro_rules! provider_options {
    ($provider:ident, $example:literal) => {
        impl $provider {
            /// A model by its name. The key is taken from the environment when it is first asked, unless it is given.
            pub fn new(model: impl Into<String>) -> Self {
                Self { setup: Setup::new(model.into(), Connection::new(HOME)) }
            }

            /// A model with the key, and the address if there is one, of the environment.
            ///
            /// # Errors
            /// If the environment has neither.
            pub fn from_env(model: impl Into<String>) -> Result<Self, crate::ModelError> {
                Ok(Self { setup: Setup::from_env(model.into(), HOME)? })
            }

            /// The key. It is shown nowhere: not in errors, not in logs, not with `{:?}`.
            pub fn api_key(mut self, key: impl Into<crate::Secret>) -> Self {
                self.setup.connection = self.setup.connection.api_key(key.into());
                self
            }

            /// The environment variable that holds the key.
            pub fn api_key_from(mut self, variable: impl Into<String>) -> Self {
                self.setup.connection = self.setup.connection.api_key_from(variable.into());
                self
            }

            /// Another server. It is not sent the key of the environment, unless
            #[doc = concat!("[`api_key_from`](", stringify!($provider), "::api_key_from) says so.")]
            pub fn base_url(mut self, url: impl Into<String>) -> Self {
                self.setup.connection = self.setup.connection.base_url(url);
                self
            }

            /// One more header. Its value is not shown either.
            pub fn header(mut self, name: impl Into<String>, value: impl Into<crate::Secret>) -> Self {
                self.setup.connection = self.setup.connection.header(name.into(), value.into());
                self
            }

            /// How long a whole answer may take, with all that is tried again; ten minutes if nothing is said.
            pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
                self.setup.connection.timeout = timeout;
                self
            }

            /// How long connecting may take; ten seconds if nothing is said.
            pub fn connect_timeout(mut self, timeout: std::time::Duration) -> Self {
                self.setup.connection = self.setup.connection.connect_timeout(timeout);
                self
            }

            /// How long it may be silent while it streams an answer; two minutes if nothing is said.
            pub fn silence(mut self, silence: std::time::Duration) -> Self {
                self.setup.connection.silence = silence;
                self
            }

            /// How often a request that failed is sent again, as long as nothing of the answer was passed on; twice if
            /// nothing is said. Only what may well pass is tried again: too many requests, an overloaded provider,
            /// broken connections, silence. A pause that the provider asks for is kept, if it is a minute at most.
            pub fn retries(mut self, retries: u32) -> Self {
                self.setup.connection.retries = retries;
                self
            }

            /// Under which name its answers are kept. What only the provider understands is sent back to the same name
            /// only. It is the provider's, or the host of another server, if nothing is said.
            pub fn provider(mut self, name: impl Into<String>) -> Self {
                self.setup.provider = Some(name.into());
                self
            }

            /// See [`Settings::temperature`](crate::Settings::temperature); a request can say otherwise.
            pub fn temperature(mut self, temperature: f64) -> Self {
                self.setup.settings.temperature = Some(temperature);
                self
            }

            /// See [`Settings::top_p`](crate::Settings::top_p); a request can say otherwise.
            pub fn top_p(mut self, top_p: f64) -> Self {
                self.setup.settings.top_p = Some(top_p);
                self
            }

            /// See [`Settings::max_tokens`](crate::Settings::max_tokens); a request can say otherwise.
            pub fn max_tokens(mut self, tokens: u32) -> Self {
                self.setup.settings.max_tokens = Some(tokens);
                self
            }

            /// See [`Settings::stop`](crate::Settings::stop); a request can say otherwise.
            pub fn stop<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
                self.setup.settings.stop = words.into_iter().map(Into::into).collect();
                self
            }

            /// Lets answers in a given form come as the arguments of a tool, for models and servers that cannot be held
            /// to a JSON schema, or not while they have tools.
            pub fn output_by_tool(mut self) -> Self {
                self.setup.output_by_tool = true;
                self
            }

            /// A field of the provider's own, added to every request as it is; fields of objects are merged.
            ///
            /// ```
            #[doc = concat!("use superstep_agent::", stringify!($provider), ";")]
            #[doc = concat!("let model = ", $example, ";")]
            /// # let _ = model;
            /// ```
            pub fn setting(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
                let field = superstep::JsonMap::from_iter([(name.into(), value.into())]);
                let mut extra = serde_json::Value::Object(std::mem::take(&mut self.setup.settings.extra));
                super::setup::merge(&mut extra, field);
                self.setup.settings.extra = extra.as_object().cloned().unwrap_or_default();
                self
            }
        }

        #[async_trait::async_trait]
        impl crate::ChatModel for $provider {
            fn name(&self) -> &str {
                &self.setup.model
            }

            async fn generate(&self, request: crate::ChatRequest) -> Result<superstep::Message, crate::ModelError> {
                let asked = self.setup.complete(request);
                let post = self.post(&asked, false).map_err(|fault| self.setup.error(fault))?;
                self.setup.connection.whole(&self.setup.model, &post, || Self::decoder(&asked)).await
            }

            async fn stream(&self, request: crate::ChatRequest) -> Result<crate::ChunkStream, crate::ModelError> {
                let asked = self.setup.complete(request);
                let post = self.post(&asked, true).map_err(|fault| self.setup.error(fault))?;
                self.setup.connection.pieces(&self.setup.model, &post, || Self::decoder(&asked)).await
            }
        }
    };
}
pub(crate) use provider_options;
