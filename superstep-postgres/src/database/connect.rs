//! From an address to a pool of connections.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, Pool, Runtime};
use superstep_storage::DatabaseError;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, NoTls, Socket};

#[cfg(feature = "tls")]
use super::PostgresTls;
use super::builder::wrong;

/// How long to wait for a connection that is free.
const WAIT: Duration = Duration::from_secs(30);
/// How long to wait for a new connection, and for the other side to say that data arrived.
const NETWORK: Duration = Duration::from_secs(10);
/// After how long in silence a connection is tried.
const SILENCE: Duration = Duration::from_mins(1);

/// An address that was understood.
pub(super) struct Target {
    /// The address without secrets.
    pub(super) name: String,
    config: Config,
    #[cfg(feature = "tls")]
    has_sslmode: bool,
}

impl Target {
    pub(super) fn parse(address: &str) -> Result<Self, DatabaseError> {
        // Whenever a certificate is checked here, its name is too.
        let address = address.replace("sslmode=verify-full", "sslmode=require");
        let address = address.replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config = address.parse().map_err(|error: tokio_postgres::Error| DatabaseError::Open {
            database: "postgres".to_owned(),
            why: "the address cannot be read; it looks like `postgres://user:password@host/database`".to_owned(),
            source: Some(Arc::new(error)),
        })?;
        add_defaults(&mut config);
        Ok(Self {
            name: name(&config),
            config,
            #[cfg(feature = "tls")]
            has_sslmode: address.contains("sslmode="),
        })
    }
}

fn add_defaults(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("superstep");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(NETWORK);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(NETWORK);
    }
    config.keepalives_idle(config.get_keepalives_idle().min(SILENCE));
}

/// The address without user, password and settings.
fn name(config: &Config) -> String {
    let host = |(number, host): (usize, &Host)| {
        let host = match host {
            Host::Tcp(host) => host.clone(),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        };
        // One port may serve all hosts.
        match config.get_ports().get(number).or_else(|| config.get_ports().first()) {
            Some(port) if *port != 5432 => format!("{host}:{port}"),
            _ => host,
        }
    };
    let hosts: Vec<_> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or_else(|| config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

#[cfg(not(feature = "tls"))]
pub(super) fn pool(target: Target, size: usize, patience: Duration) -> Result<Pool, DatabaseError> {
    if target.config.get_ssl_mode() == SslMode::Require {
        let why = "its address asks for encryption, which this build has not; turn on feature `tls`";
        return Err(wrong(&target.name, why));
    }
    build(target, size, patience, NoTls)
}

#[cfg(feature = "tls")]
pub(super) fn pool(
    mut target: Target,
    size: usize,
    patience: Duration,
    tls: Option<PostgresTls>,
) -> Result<Pool, DatabaseError> {
    if tls.is_some() && !target.has_sslmode {
        target.config.ssl_mode(SslMode::Require);
    }
    let tls = match target.config.get_ssl_mode() {
        SslMode::Disable => return build(target, size, patience, NoTls),
        // Who goes on without encryption gains nothing by checking a certificate.
        SslMode::Prefer => tls.unwrap_or_else(|| PostgresTls::new().unverified()),
        _ => tls.unwrap_or_default(),
    };
    let connector = tls.connector(&target.name)?;
    build(target, size, patience, connector)
}

fn build<T>(target: Target, size: usize, patience: Duration, tls: T) -> Result<Pool, DatabaseError>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let Target { name, config, .. } = target;
    // Hosts are tried one after another.
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
    let connecting = patience.saturating_mul(hosts);
    let pool = Pool::builder(Manager::new(config, tls)).max_size(size).runtime(Runtime::Tokio1);
    let pool = pool.wait_timeout(Some(WAIT)).create_timeout(Some(connecting)).build();
    pool.map_err(|error| wrong(&name, error.to_string()))
}
