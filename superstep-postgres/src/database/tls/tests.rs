//! Encryption, against a server that does nothing but refuse the user, over TLS.
//!
//! `localhost.pem` vouches for itself; it is for these tests only.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use superstep_storage::DatabaseError;

use super::PostgresTls;
use crate::database::PostgresDatabase;

const CERTIFICATE: &[u8] = include_bytes!("localhost.pem");
const KEY: &[u8] = include_bytes!("localhost.key.pem");

#[tokio::test]
async fn a_certificate_is_checked_against_the_given_roots() {
    let server = Server::start(ClientCertificate::NotAsked);
    check_encrypted(&server.address("sslmode=require"), Some(trusting())).await;
    assert!(server.was_encrypted());
}

#[tokio::test]
async fn settings_for_encryption_make_it_a_must() {
    let server = Server::start(ClientCertificate::NotAsked);
    check_encrypted(&server.address(""), Some(trusting())).await;
    assert!(server.was_encrypted());

    let plain = Server::plain();
    let refused = connect(&plain.address(""), Some(trusting())).await;
    assert!(refused.source().unwrap().to_string().contains("TLS"), "{refused:?}");
    assert!(!plain.was_encrypted());
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    for mode in ["sslmode=require", "sslmode=verify-full", "sslmode=verify-ca"] {
        let server = Server::start(ClientCertificate::NotAsked);
        let refused = connect(&server.address(mode), None).await;
        assert!(matches!(refused, DatabaseError::Open { .. }), "{refused:?}");
        assert!(refused.to_string().ends_with("check the user, `sslmode` and certificates"), "{refused}");
        assert!(!server.was_encrypted());
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let server = Server::start(ClientCertificate::NotAsked);
    let other = "host=other.example.com hostaddr=127.0.0.1 user=agent sslmode=require";
    let refused = connect(&format!("{other} port={}", server.port), Some(trusting())).await;
    assert!(matches!(refused, DatabaseError::Open { .. }), "{refused:?}");
    assert!(!server.was_encrypted());
}

#[tokio::test]
async fn unverified_encrypts_whoever_it_is() {
    let server = Server::start(ClientCertificate::NotAsked);
    check_encrypted(&server.address("sslmode=require"), Some(PostgresTls::new().unverified())).await;
    assert!(server.was_encrypted());
}

#[tokio::test]
async fn prefer_encrypts_if_the_server_can_and_goes_on_if_not() {
    let server = Server::start(ClientCertificate::NotAsked);
    check_encrypted(&server.address("sslmode=prefer"), None).await;
    assert!(server.was_encrypted());

    let plain = Server::plain();
    let refused = connect(&plain.address("sslmode=prefer"), None).await;
    assert!(refused.to_string().contains("does not accept this user"), "{refused}");
    assert!(!plain.was_encrypted());
}

#[tokio::test]
async fn disable_does_not_even_ask() {
    let plain = Server::plain();
    let refused = connect(&plain.address("sslmode=disable"), None).await;
    assert!(refused.to_string().contains("does not accept this user"), "{refused}");
}

#[tokio::test]
async fn a_client_shows_its_certificate() {
    let server = Server::start(ClientCertificate::Required);
    let tls = trusting().client_certificate(CERTIFICATE, KEY);
    check_encrypted(&server.address("sslmode=require"), Some(tls)).await;
    assert!(server.was_encrypted());

    let server = Server::start(ClientCertificate::Required);
    let refused = connect(&server.address("sslmode=require"), Some(trusting())).await;
    assert!(!refused.to_string().contains("does not accept this user"), "{refused}");
    assert!(!server.was_encrypted());
}

#[tokio::test]
async fn what_is_no_pem_is_refused_by_name() {
    let why = [
        (PostgresTls::new().root_certificates("tea"), "a certificate cannot be read; give it as PEM"),
        (trusting().client_certificate("tea", KEY), "a certificate cannot be read; give it as PEM"),
        (trusting().client_certificate(CERTIFICATE, "tea"), "the client's key cannot be read; give it as PEM"),
    ];
    for (tls, why) in why {
        let refused = connect("postgres://agent@127.0.0.1:1/agents", Some(tls)).await.to_string();
        assert!(refused.ends_with(why), "{refused}");
    }
}

#[test]
fn keys_are_not_shown() {
    let shown = format!("{:?}", trusting().client_certificate(CERTIFICATE, KEY));
    assert_eq!(shown, "PostgresTls { roots: 1, has_identity: true, is_unverified: false }");
}

fn trusting() -> PostgresTls {
    PostgresTls::new().root_certificates(CERTIFICATE)
}

async fn connect(address: &str, tls: Option<PostgresTls>) -> DatabaseError {
    let builder = PostgresDatabase::builder(address);
    let builder = match tls {
        Some(tls) => builder.tls(tls),
        None => builder,
    };
    builder.connect().await.expect_err("the server takes nobody")
}

/// Comes as far as a server that was understood.
async fn check_encrypted(address: &str, tls: Option<PostgresTls>) {
    let refused = connect(address, tls).await;
    assert!(refused.to_string().contains("does not accept this user"), "{refused}: {:?}", refused.source());
}

#[derive(Clone, Copy)]
enum ClientCertificate {
    NotAsked,
    Required,
}

/// Takes one client, and says that its password is wrong.
struct Server {
    port: u16,
    /// Whether the client was heard out over TLS.
    thread: JoinHandle<bool>,
}

impl Server {
    fn start(wanted: ClientCertificate) -> Self {
        Self::run(move |client| serve_encrypted(client, wanted).is_ok())
    }

    fn plain() -> Self {
        Self::run(|client| {
            // What the client thinks of it is its own business.
            let _ = serve_plain(client);
            false
        })
    }

    fn run(serve: impl FnOnce(TcpStream) -> bool + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { port, thread: thread::spawn(move || serve(listener.accept().unwrap().0)) }
    }

    fn address(&self, query: &str) -> String {
        format!("postgres://agent@127.0.0.1:{}/agents?{query}", self.port)
    }

    fn was_encrypted(self) -> bool {
        self.thread.join().unwrap()
    }
}

fn serve_encrypted(mut client: TcpStream, wanted: ClientCertificate) -> std::io::Result<()> {
    read_message(&mut client)?;
    client.write_all(b"S")?;
    let connection = ServerConnection::new(config(wanted)).expect("the configuration is complete");
    let mut stream = StreamOwned::new(connection, client);
    read_message(&mut stream)?;
    refuse(&mut stream)
}

fn serve_plain(mut client: TcpStream) -> std::io::Result<()> {
    const WANTS_TLS: [u8; 4] = 80_877_103_u32.to_be_bytes();
    if read_message(&mut client)?.starts_with(&WANTS_TLS) {
        client.write_all(b"N")?;
        read_message(&mut client)?;
    }
    refuse(&mut client)
}

/// The message of a client that has just come: its length, counted with itself, and the rest.
fn read_message(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut message)?;
    Ok(message)
}

fn refuse(stream: &mut impl Write) -> std::io::Result<()> {
    let fields = b"SFATAL\0VFATAL\0C28P01\0Mno\0\0";
    stream.write_all(b"E")?;
    stream.write_all(&(fields.len() as u32 + 4).to_be_bytes())?;
    stream.write_all(fields)?;
    stream.flush()
}

fn config(wanted: ClientCertificate) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let verifier = match wanted {
        ClientCertificate::NotAsked => WebPkiClientVerifier::no_client_auth(),
        ClientCertificate::Required => {
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap()
        }
    };
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = config.with_client_cert_verifier(verifier).with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}
