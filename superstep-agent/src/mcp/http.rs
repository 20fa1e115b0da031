//! The HTTP client, with redirects that carry no secret to another place.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use superstep::BoxError;

use super::server::Address;
use crate::tls;

const MOST_REDIRECTS: usize = 10;

/// A transport to an address. Nothing is sent yet.
pub(super) fn transport(
    address: &Address,
    tries: u32,
    pause: Duration,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, BoxError> {
    let url = Url::parse(&address.url).map_err(|e| format!("`{}` is no address: {e}", shown(&address.url)))?;
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::config(url.as_str()))
        .redirect(Policy::custom(follow))
        .build()?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str());
    let mut retry = ExponentialBackoff::default();
    (retry.max_times, retry.base_duration) = (Some(tries as usize), pause);
    config.retry_config = Arc::new(retry);
    config.custom_headers = headers(address)?;
    if let Some(token) = &address.token {
        config = config.auth_header(token.as_str());
    }
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// An address as it may be shown: without what is secret in it.
pub(super) fn shown(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return "…".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // Addresses that cannot have them have nothing to hide.
    let _ = (url.set_username(""), url.set_password(None));
    url.to_string()
}

/// An error of an address without what is secret in the address. What is not secret stays as it is.
pub(super) fn without_secrets(error: BoxError, address: &Address) -> BoxError {
    let Ok(url) = Url::parse(&address.url) else { return error };
    let secrets = [url.query(), url.password(), Some(url.username()), url.fragment()];
    let secrets: Vec<&str> = secrets.into_iter().flatten().filter(|secret| !secret.is_empty()).collect();
    if secrets.is_empty() {
        return error;
    }
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let words = causes.fold(error.to_string(), |words, cause| {
        let cause = cause.to_string();
        if words.contains(&cause) { words } else { format!("{words}: {cause}") }
    });
    let words = words.replace(url.as_str(), &shown(url.as_str()));
    secrets.iter().fold(words, |words, secret| words.replace(secret, "[secret]")).into()
}

fn headers(address: &Address) -> Result<HashMap<HeaderName, HeaderValue>, BoxError> {
    let read = |(name, value): &(String, String)| {
        let wrong = || BoxError::from(format!("header `{name}` cannot be sent"));
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    address.headers.iter().map(read).collect()
}

/// Follows only where the request stays what it is, and with its headers at the same server.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
    let stays = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if keeps_body && stays && attempt.previous().len() <= MOST_REDIRECTS { attempt.follow() } else { attempt.stop() }
}
