//! One way to every provider: addresses, keys, timeouts, and another try where one may help.
//!
//! A request is sent again only as long as nothing of its answer was passed on.

mod fault;
mod reading;
mod retry;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use serde_json::Value;
use superstep::{Message, MessageAssembler, MessageChunk};

pub(crate) use fault::Fault;
pub(crate) use reading::Decode;
use reading::{Reading, Saying};
use retry::Attempts;

use super::Secret;
use crate::model::{ChunkStream, ModelError, ModelErrorKind};
use crate::tls;

/// What a provider's own servers are called, and how they know their customers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home {
    /// Under which name its answers are kept.
    pub(crate) provider: &'static str,
    pub(crate) url: &'static str,
    /// The variable with another address.
    pub(crate) url_variable: &'static str,
    /// The variable with the key.
    pub(crate) key_variable: &'static str,
    /// The header that the key is sent in, and what stands before it there.
    pub(crate) key_header: (&'static str, &'static str),
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    /// What follows the base address.
    pub(crate) path: String,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) body: Value,
}

/// How a provider is reached. Clones share their connections.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    home: Home,
    base_url: BaseUrl,
    key: Key,
    headers: Vec<(String, Secret)>,
    pub(crate) timeout: Duration,
    pub(crate) silence: Duration,
    pub(crate) retries: u32,
    connect_timeout: Duration,
    client: Arc<OnceLock<Client>>,
}

/// An address that is shown without what may be secret in it.
#[derive(Clone, PartialEq, Eq)]
struct BaseUrl(String);

impl BaseUrl {
    /// Name and password, if it has some.
    fn credentials(&self) -> Option<&str> {
        let (before, _) = self.authority().rsplit_once('@')?;
        Some(before)
    }

    fn host(&self) -> &str {
        self.authority().rsplit('@').next().unwrap_or_default()
    }

    fn authority(&self) -> &str {
        let address = self.0.split_once("://").map_or(&*self.0, |(_, rest)| rest);
        address.split(['/', '?', '#']).next().unwrap_or(address)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.split(['?', '#']).next().unwrap_or_default();
        let credentials = self.credentials().map(|credentials| format!("{credentials}@")).unwrap_or_default();
        fmt::Debug::fmt(&shown.replacen(&credentials, "", 1), f)
    }
}

#[derive(Debug, Clone)]
enum Key {
    Given(Secret),
    Variable(String),
    /// The provider's usual variable, but only for its own servers: nobody else is to see it.
    Usual,
    Nothing,
}

/// Tells of faults, whatever the provider may have put into its words.
struct Teller {
    model: String,
    secrets: Vec<Secret>,
}

impl Teller {
    fn error(&self, fault: Fault) -> ModelError {
        let fault = self.secrets.iter().fold(fault, |fault, secret| fault.without(secret.reveal()));
        fault.into_error(&self.model)
    }
}

impl Connection {
    pub(crate) fn new(home: Home) -> Self {
        Self {
            home,
            base_url: BaseUrl(home.url.to_owned()),
            key: Key::Usual,
            headers: Vec::new(),
            timeout: Duration::from_mins(10),
            silence: Duration::from_mins(2),
            retries: 2,
            connect_timeout: Duration::from_secs(10),
            client: Arc::default(),
        }
    }

    /// The connection that the environment describes.
    pub(crate) fn from_env(home: Home) -> Result<Self, Fault> {
        let connection = Self::new(home);
        match (variable(home.url_variable), variable(home.key_variable)) {
            (Some(url), Some(key)) => Ok(connection.base_url(url).api_key(key.into())),
            (Some(url), None) => Ok(Self { key: Key::Nothing, ..connection.base_url(url) }),
            (None, Some(key)) => Ok(connection.api_key(key.into())),
            (None, None) => Err(no_key(home.key_variable)),
        }
    }

    pub(crate) fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = BaseUrl(url.into().trim_end_matches('/').to_owned());
        // What it trusts depends on the address.
        self.client = Arc::default();
        self
    }

    pub(crate) fn api_key(mut self, key: Secret) -> Self {
        self.key = Key::Given(key);
        self
    }

    pub(crate) fn api_key_from(mut self, variable: String) -> Self {
        self.key = Key::Variable(variable);
        self
    }

    pub(crate) fn header(mut self, name: String, value: Secret) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self.client = Arc::default();
        self
    }

    /// Whether it leads to the provider's own servers.
    pub(crate) fn is_home(&self) -> bool {
        self.base_url.0 == self.home.url
    }

    /// The name of the provider, or the host of another server.
    pub(crate) fn provider(&self) -> &str {
        if self.is_home() {
            return self.home.provider;
        }
        self.base_url.host()
    }

    /// The answer to a request, at once.
    pub(crate) async fn whole<D: Decode>(
        &self,
        model: &str,
        post: &Post,
        decoder: impl Fn() -> D,
    ) -> Result<Message, ModelError> {
        let teller = self.teller(model);
        let mut attempts = Attempts::new(self.timeout, self.retries);
        loop {
            match attempts.in_time(self.ask(post, decoder())).await {
                Ok(message) => return Ok(message),
                Err(fault) => attempts.after(fault).await.map_err(|fault| teller.error(fault))?,
            }
        }
    }

    /// The answer to a request, in pieces; the first of them has come when this returns.
    pub(crate) async fn pieces<D: Decode>(
        &self,
        model: &str,
        post: &Post,
        decoder: impl Fn() -> D,
    ) -> Result<ChunkStream, ModelError> {
        let teller = self.teller(model);
        let mut attempts = Attempts::new(self.timeout, self.retries);
        loop {
            match attempts.in_time(self.begin(post, decoder())).await {
                Ok((ready, reading)) => return Ok(Saying::new(ready, reading, attempts, teller).into_stream()),
                Err(fault) => attempts.after(fault).await.map_err(|fault| teller.error(fault))?,
            }
        }
    }

    fn teller(&self, model: &str) -> Teller {
        let headers = self.headers.iter().map(|(_, value)| value.clone());
        let credentials = self.base_url.credentials().map(Secret::from);
        let secrets = headers.chain(credentials).chain(self.key().ok().flatten()).collect();
        Teller { model: model.to_owned(), secrets }
    }

    async fn ask<D: Decode>(&self, post: &Post, mut decoder: D) -> Result<Message, Fault> {
        let pieces = read_whole(self.send(post).await?, &mut decoder).await?;
        let mut whole = MessageAssembler::new();
        pieces.into_iter().for_each(|piece| whole.push(piece));
        Ok(whole.finish())
    }

    /// Reads up to the first piece that says something.
    async fn begin<D: Decode>(
        &self,
        post: &Post,
        mut decoder: D,
    ) -> Result<(VecDeque<MessageChunk>, Reading<D>), Fault> {
        let sending = tokio::time::timeout(self.silence, self.send(post));
        let response = sending.await.unwrap_or_else(|_| Err(silent(self.silence)))?;
        // Not every server can stream, and some tell errors in this way.
        if is_json(&response) {
            let pieces = read_whole(response, &mut decoder).await?;
            return Ok((pieces.into(), Reading::over(decoder)));
        }
        let mut reading = Reading::new(response, decoder, self.silence);
        let mut ready = VecDeque::new();
        while let Some(piece) = reading.next().await? {
            let says_something = !piece.deltas.is_empty();
            ready.push_back(piece);
            if says_something {
                break;
            }
        }
        Ok((ready, reading))
    }

    /// The response, if it is a good one.
    async fn send(&self, post: &Post) -> Result<Response, Fault> {
        let key = self.key()?;
        let request = self
            .client()?
            .post(format!("{}{}", self.base_url.0, post.path))
            .headers(self.header_map(post, key.as_ref())?)
            .body(post.body.to_string());
        let response = request.send().await.map_err(not_reached)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(complaint(response).await)
    }

    fn header_map(&self, post: &Post, key: Option<&Secret>) -> Result<HeaderMap, Fault> {
        let mut headers =
            HeaderMap::from_iter([(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        for (name, value) in post.headers {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some(key) = key {
            let (name, before) = self.home.key_header;
            headers.insert(name, hidden(&format!("{before}{}", key.reveal()))?);
        }
        for (name, value) in &self.headers {
            let header =
                HeaderName::try_from(name).map_err(|_| Fault::invalid(format!("`{name}` is no name of a header")))?;
            headers.insert(header, hidden(value.reveal())?);
        }
        Ok(headers)
    }

    fn key(&self) -> Result<Option<Secret>, Fault> {
        let name = match &self.key {
            Key::Given(key) => return Ok(Some(key.clone())),
            Key::Variable(name) => name,
            Key::Usual if self.is_home() => self.home.key_variable,
            Key::Usual | Key::Nothing => return Ok(None),
        };
        variable(name).map(|key| Some(key.into())).ok_or_else(|| no_key(name))
    }

    /// Made when it is first needed, so that a model can be made outside of a runtime.
    fn client(&self) -> Result<&Client, Fault> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::builder()
            .tls_backend_preconfigured(tls::config(&self.base_url.0))
            .connect_timeout(self.connect_timeout)
            // A redirect would carry the key to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("superstep/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                Fault::new(ModelErrorKind::Connection, "no HTTP client can be made").for_good().caused_by(error)
            })?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// Reads an answer that comes at once.
async fn read_whole<D: Decode>(response: Response, decoder: &mut D) -> Result<[MessageChunk; 2], Fault> {
    let body = response.text().await.map_err(broken_off)?;
    let answer = serde_json::from_str(&body).map_err(|error| {
        let start: String = body.chars().take(200).collect();
        Fault::unexpected(format!("its answer is no JSON: `{start}`")).caused_by(error)
    })?;
    Ok([decoder.whole(answer)?, decoder.finish()?])
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// A variable of the environment that says something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn no_key(variable: &str) -> Fault {
    let words = format!("there is no key: set the environment variable `{variable}`, or call `api_key`");
    Fault::new(ModelErrorKind::Auth, words)
}

fn hidden(value: &str) -> Result<HeaderValue, Fault> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| Fault::new(ModelErrorKind::Auth, "the key or a header has characters that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn not_reached(error: reqwest::Error) -> Fault {
    let words = if error.is_timeout() { "cannot be reached in time" } else { "cannot be reached" };
    Fault::new(ModelErrorKind::Connection, words).caused_by(error.without_url())
}

fn broken_off(error: reqwest::Error) -> Fault {
    Fault::new(ModelErrorKind::BrokenStream, "its answer broke off").caused_by(error.without_url())
}

fn silent(silence: Duration) -> Fault {
    let words = format!("it was silent for {silence:?}; give it more with `silence`");
    Fault::new(ModelErrorKind::Timeout, words)
}

/// What a bad response says, and how long it wants us to wait.
async fn complaint(response: Response) -> Fault {
    let status = response.status();
    if status.is_redirection() {
        let to = response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("elsewhere").to_owned();
        return Fault::invalid(format!("it was moved to `{to}`: set the `base_url` accordingly"));
    }
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let milliseconds = header("retry-after-ms").and_then(|value| value.parse().ok()).map(Duration::from_millis);
    let pause = milliseconds.or_else(|| retry::retry_after(header("retry-after")?, SystemTime::now()));
    let body = response.text().await.unwrap_or_default();
    let mut fault = Fault::told(Some(status.as_u16()), &body);
    fault.pause = pause;
    fault
}

#[cfg(test)]
mod tests {
    use super::{Connection, Home};

    #[test]
    fn another_server_is_known_by_its_host() {
        let home = Home {
            provider: "home",
            url: "https://api.example.org/v1",
            url_variable: "URL",
            key_variable: "KEY",
            key_header: ("key", ""),
        };
        let provider = |url: &str| Connection::new(home).base_url(url).provider().to_owned();
        assert_eq!(provider("https://api.example.org/v1/"), "home");
        assert_eq!(provider("http://localhost:11434/v1"), "localhost:11434");
        assert_eq!(provider("api.deepseek.com"), "api.deepseek.com");
        assert_eq!(provider("http://user:pass@localhost:80/v1"), "localhost:80");
    }
}
