//! What went wrong, in the words of the provider, and of which kind it is.

use std::time::Duration;

use serde_json::Value;
use superstep::BoxError;

use crate::model::{ModelError, ModelErrorKind};

/// An error on its way to a [`ModelError`]: it does not know the model yet, but whether to try again.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) kind: ModelErrorKind,
    pub(crate) words: String,
    pub(crate) status: Option<u16>,
    pub(crate) pause: Option<Duration>,
    pub(crate) again: bool,
    source: Option<BoxError>,
}

impl Fault {
    /// A fault; whether the request may be sent again depends on the kind.
    pub(crate) fn new(kind: ModelErrorKind, words: impl Into<String>) -> Self {
        let again = ModelError::new(kind, "", "").is_retryable();
        Self { kind, words: words.into(), status: None, pause: None, again, source: None }
    }

    /// The same fault, which another attempt does not mend.
    pub(crate) fn for_good(mut self) -> Self {
        self.again = false;
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What could not be understood.
    pub(crate) fn unexpected(words: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Unexpected, words)
    }

    /// What the model or its provider does not want to answer.
    pub(crate) fn refused(words: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Refused, words)
    }

    /// What cannot be asked in this way.
    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::InvalidRequest, words)
    }

    /// What the provider tells about its failure, with a status or in the middle of a stream.
    pub(crate) fn told(status: Option<u16>, body: &str) -> Self {
        let complaint = Complaint::read(body);
        let kind = complaint.kind(status);
        let status_words = status.map_or(String::new(), |status| format!(" (status {status})"));
        let words = format!("{}{status_words}: {}", in_words(kind), complaint.message);
        let mut fault = Self { status, ..Self::new(kind, words) };
        // More credit does not come by waiting.
        fault.again &= status.or(complaint.status) != Some(402) && !complaint.code.contains("insufficient_quota");
        fault
    }

    /// The same fault without a word that must not be shown.
    pub(crate) fn without(mut self, secret: &str) -> Self {
        if !secret.is_empty() {
            self.words = self.words.replace(secret, "[key]");
        }
        self
    }

    pub(crate) fn into_error(self, model: &str) -> ModelError {
        let mut error = ModelError::new(self.kind, model, self.words);
        if let Some(status) = self.status {
            error = error.status_code(status);
        }
        if let Some(pause) = self.pause {
            error = error.retry_after(pause);
        }
        if !self.again {
            error = error.for_good();
        }
        match self.source {
            Some(source) => error.caused_by(source),
            None => error,
        }
    }
}

fn in_words(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::Auth => "the key is not accepted",
        ModelErrorKind::RateLimited => "too many requests or no credit",
        ModelErrorKind::Overloaded => "the provider is overloaded or fails",
        ModelErrorKind::NotFound => "there is no such model or address",
        ModelErrorKind::ContextTooLong => "the conversation is too long",
        ModelErrorKind::Refused => "the provider refuses",
        ModelErrorKind::Timeout => "the provider took too long",
        _ => "the provider does not accept the request",
    }
}

/// An error body, in any of the forms that providers and compatible servers use.
struct Complaint {
    message: String,
    code: String,
    /// The status that it would have been sent with, if it comes in an answer that began well.
    status: Option<u16>,
}

impl Complaint {
    fn read(body: &str) -> Self {
        const LONGEST: usize = 500;
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let outer = value.get(0).unwrap_or(&value);
        let error = outer.get("error").unwrap_or(outer);
        let told = error.as_str().or_else(|| [error, outer].iter().find_map(|v| v["message"].as_str()));
        let told = told.or_else(|| outer["detail"].as_str()).unwrap_or(body);
        let message = told.trim().chars().take(LONGEST).collect::<String>();
        let reasons = error["details"].as_array().into_iter().flatten().map(|detail| &detail["reason"]);
        let codes = [&error["code"], &error["type"], &error["status"]].into_iter().chain(reasons);
        let code = codes.filter_map(Value::as_str).collect::<Vec<_>>().join(" ").to_lowercase();
        let message = if message.is_empty() { "it does not say why".to_owned() } else { message };
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
        Self { message, code, status }
    }

    /// What the code says first, then the status, then the rest of the code.
    fn kind(&self, status: Option<u16>) -> ModelErrorKind {
        use ModelErrorKind as Kind;
        let status = status.or(self.status);
        let code = |words: &[&str]| words.iter().any(|word| self.code.contains(word));
        if self.is_about_length(status) {
            Kind::ContextTooLong
        } else if code(&["content_policy", "content_filter"]) {
            Kind::Refused
        } else if code(&["authentication", "permission", "api_key", "unauthenticated"]) {
            Kind::Auth
        } else if code(&["rate_limit", "insufficient_quota", "resource_exhausted"]) {
            Kind::RateLimited
        } else if code(&["not_found"]) {
            Kind::NotFound
        } else if let Some(status) = status {
            kind_of(status)
        } else if code(&["invalid"]) {
            Kind::InvalidRequest
        } else if code(&["timeout", "deadline"]) {
            Kind::Timeout
        } else {
            Kind::Overloaded
        }
    }

    fn is_about_length(&self, status: Option<u16>) -> bool {
        const SIGNS: [&str; 6] = [
            "maximum context length",
            "context window",
            "prompt is too long",
            "input is too long",
            "maximum number of tokens",
            "context size",
        ];
        let message = self.message.to_lowercase();
        let told = SIGNS.iter().any(|sign| message.contains(sign));
        let may_be = status.is_none_or(|status| matches!(status, 400 | 413 | 422));
        may_be && (told || self.code.contains("context_length") || self.code.contains("request_too_large"))
    }
}

fn kind_of(status: u16) -> ModelErrorKind {
    match status {
        401 | 403 => ModelErrorKind::Auth,
        402 | 429 => ModelErrorKind::RateLimited,
        404 => ModelErrorKind::NotFound,
        408 | 504 => ModelErrorKind::Timeout,
        // A conflict is the provider's own, and passes.
        409 | 500.. => ModelErrorKind::Overloaded,
        _ => ModelErrorKind::InvalidRequest,
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, ModelErrorKind};

    #[track_caller]
    fn check(status: impl Into<Option<u16>>, body: &str, kind: ModelErrorKind, words: &str) {
        let fault = Fault::told(status.into(), body);
        assert_eq!((fault.kind, &*fault.words), (kind, words));
    }

    #[test]
    fn errors_of_all_providers_are_understood() {
        use ModelErrorKind::{Auth, ContextTooLong, InvalidRequest, NotFound, Overloaded, RateLimited, Refused};
        let openai =
            |code: &str| format!(r#"{{"error":{{"message":"m","type":"invalid_request_error","code":"{code}"}}}}"#);
        check(401, &openai("invalid_api_key"), Auth, "the key is not accepted (status 401): m");
        check(404, &openai("model_not_found"), NotFound, "there is no such model or address (status 404): m");
        check(400, &openai("context_length_exceeded"), ContextTooLong, "the conversation is too long (status 400): m");
        check(400, &openai("content_policy_violation"), Refused, "the provider refuses (status 400): m");
        check(400, &openai(""), InvalidRequest, "the provider does not accept the request (status 400): m");
        let anthropic = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        check(529, anthropic, Overloaded, "the provider is overloaded or fails (status 529): Overloaded");
        check(None, anthropic, Overloaded, "the provider is overloaded or fails: Overloaded");
        let gemini = r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT",
            "details":[{"reason":"API_KEY_INVALID"}]}}]"#;
        check(400, gemini, Auth, "the key is not accepted (status 400): API key not valid.");
        let inside = r#"{"error":{"code":503,"message":"m"}}"#;
        check(None, inside, Overloaded, "the provider is overloaded or fails: m");
        check(None, &inside.replace("503", "429"), RateLimited, "too many requests or no credit: m");
        check(429, "slow down", RateLimited, "too many requests or no credit (status 429): slow down");
        check(
            500,
            r#"{"error":"out of memory"}"#,
            Overloaded,
            "the provider is overloaded or fails (status 500): out of memory",
        );
        check(503, "", Overloaded, "the provider is overloaded or fails (status 503): it does not say why");
        let vllm = r#"{"object":"error","message":"This model's maximum context length is 10","code":400}"#;
        check(
            400,
            vllm,
            ContextTooLong,
            "the conversation is too long (status 400): This model's maximum context length is 10",
        );
    }

    #[test]
    fn missing_credit_is_not_waited_for() {
        let body = r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        let fault = Fault::told(Some(429), body);
        assert_eq!((fault.kind, fault.again), (ModelErrorKind::RateLimited, false));
        assert!(!fault.into_error("m").is_retryable());
        assert!(!Fault::told(Some(402), "pay first").again);
        assert!(Fault::told(Some(429), "slow down").into_error("m").is_retryable());
    }
}
