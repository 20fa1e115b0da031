//! Encrypted connections.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use superstep_storage::DatabaseError;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How connections to PostgreSQL are encrypted: whom to trust, and how to show who we are.
///
/// The server's certificate and name are checked, against the roots that this machine trusts if none are given. (With
/// `sslmode=prefer` in the address, or no `sslmode` and no settings, nothing is checked.)
///
/// ```no_run
/// use superstep_postgres::{PostgresDatabase, PostgresTls};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = PostgresTls::new().root_certificates(std::fs::read("company-ca.pem")?);
/// let database = PostgresDatabase::builder("postgres://agent@db.example.com/agents").tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "give it to `PostgresBuilder::tls`"]
pub struct PostgresTls {
    roots: Vec<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    is_unverified: bool,
}

impl PostgresTls {
    /// Trusts what this machine trusts, and shows no certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts these certificates, in PEM form, instead of those that this machine trusts.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Shows this certificate (with its chain) to the server, and proves it with this key; both in PEM form.
    pub fn client_certificate(mut self, certificate_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((certificate_pem.into(), key_pem.into()));
        self
    }

    /// Encrypts without asking who the other side is: nobody can listen, but someone could stand between.
    pub fn unverified(mut self) -> Self {
        self.is_unverified = true;
        self
    }

    pub(super) fn connector(&self, database: &str) -> Result<MakeRustlsConnect, DatabaseError> {
        let config = self.config().map_err(|(why, source)| DatabaseError::Open {
            database: database.to_owned(),
            why: why.to_owned(),
            source: Some(source),
        })?;
        Ok(MakeRustlsConnect::new(config))
    }

    fn config(&self) -> Result<ClientConfig, Fault> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_safe_default_protocol_versions().map_err(fault("encryption is not available"))?;
        let config = config.dangerous().with_custom_certificate_verifier(self.verifier(provider)?);
        let Some((certificate, key)) = &self.identity else { return Ok(config.with_no_client_auth()) };
        let chain = certificates(certificate)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(fault("the client's key cannot be read; give it as PEM"))?;
        config.with_client_auth_cert(chain, key).map_err(fault("the client's key does not fit its certificate"))
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Fault> {
        if self.is_unverified {
            return Ok(Arc::new(AnyServer(provider)));
        }
        let roots = Arc::new(self.trusted()?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        Ok(verifier.map_err(fault("no root certificates were found; give some with `root_certificates`"))?)
    }

    fn trusted(&self) -> Result<RootCertStore, Fault> {
        let mut store = RootCertStore::empty();
        if self.roots.is_empty() {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        for pem in &self.roots {
            for certificate in certificates(pem)? {
                store.add(certificate).map_err(fault("a root certificate cannot be used"))?;
            }
        }
        Ok(store)
    }
}

impl std::fmt::Debug for PostgresTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PostgresTls");
        shown.field("roots", &self.roots.len()).field("has_identity", &self.identity.is_some());
        shown.field("is_unverified", &self.is_unverified).finish()
    }
}

/// What does not work, and what rustls says to it.
type Fault = (&'static str, Arc<dyn std::error::Error + Send + Sync>);

fn fault<E: std::error::Error + Send + Sync + 'static>(why: &'static str) -> impl FnOnce(E) -> Fault {
    move |error| (why, Arc::new(error))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Fault> {
    const WHY: &str = "a certificate cannot be read; give it as PEM";
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(fault(WHY))?;
    if found.is_empty() { Err(fault(WHY)(rustls::pki_types::pem::Error::NoItemsFound)) } else { Ok(found) }
}

/// Takes any certificate, but only from who has its key.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
