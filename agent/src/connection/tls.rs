//! The trusted certificates. Certificates and host names are always verified; no setting disables that.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Why TLS cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("--ca-file {}: {detail}", .path.display())]
    CaFile { path: PathBuf, detail: String },
    #[error("no trusted certificate was found on this system ({0}); name one with --ca-file")]
    NoRoots(String),
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// The authorities that are trusted: only those of `ca_file`, or without one those of the system. Others may take their place
/// while the agent runs.
pub struct TrustStore {
    ca_file: Option<PathBuf>,
    connector: Mutex<TlsConnector>,
}

impl TrustStore {
    pub fn read(ca_file: Option<PathBuf>) -> Result<Self, TlsError> {
        let connector = Mutex::new(connector(ca_file.as_deref())?);
        Ok(Self { ca_file, connector })
    }

    /// A connector that trusts the authorities that were read last.
    pub fn connector(&self) -> TlsConnector {
        self.connector.lock().clone()
    }

    /// Reads the authorities again. If that fails, those from before stay.
    pub async fn read_again(&self) {
        let ca_file = self.ca_file.clone();
        // However long the disk takes: until then the next attempt would fail like the last one.
        match tokio::task::spawn_blocking(move || connector(ca_file.as_deref())).await {
            Ok(Ok(connector)) => *self.connector.lock() = connector,
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the trusted certificates again"),
            // The process ends.
            Err(_) => {}
        }
    }
}

/// It names its cryptography itself, so that no process-wide default has to be installed first.
fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, TlsError> {
    let roots = match ca_file {
        Some(path) => roots_of_file(path)?,
        None => roots_of_system()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots_of_file(path: &Path) -> Result<RootCertStore, TlsError> {
    let refuse = |detail: String| TlsError::CaFile { path: path.to_owned(), detail };
    let text = std::fs::read(path).map_err(|error| refuse(describe(&error)))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() { Err(refuse("holds no certificate in PEM".to_owned())) } else { Ok(roots) }
}

fn roots_of_system() -> Result<RootCertStore, TlsError> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let errors: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
        return Err(TlsError::NoRoots(if errors.is_empty() { "its store is empty".into() } else { errors.join("; ") }));
    }
    tracing::debug!(roots = roots.len(), unusable, "loaded the system's trusted certificates");
    Ok(roots)
}

fn describe(error: &io::Error) -> String {
    error.to_string().to_lowercase()
}
