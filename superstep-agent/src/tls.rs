//! TLS with the one crypto provider that superstep uses elsewhere, and the system's certificates.

use std::sync::{Arc, OnceLock};

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// The settings of connections to an address; the system's certificates are read once, and only for `https`.
pub(crate) fn config(url: &str) -> ClientConfig {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    let is_needed = !url.trim_start().to_ascii_lowercase().starts_with("http:");
    if is_needed { CONFIG.get_or_init(|| trusting(system_roots())).clone() } else { trusting(RootCertStore::empty()) }
}

fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        tracing::warn!(errors = ?found.errors, "the system has no root certificates: no https connection is trusted");
    }
    roots
}

fn trusting(roots: RootCertStore) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring can do the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}
