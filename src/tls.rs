//! Which certificates to trust when messages are sent. Certificates and host names are always verified; there is no
//! option to disable that.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The certificates of a file, in PEM.
pub fn extra_roots(ca_file: &Path) -> Result<Vec<u8>, String> {
    let text = std::fs::read(ca_file).map_err(|error| describe(&error))?;
    let mut certificates = CertificateDer::pem_slice_iter(&text);
    match certificates.next() {
        Some(Ok(_)) => Ok(text),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("holds no certificate in PEM".to_owned()),
    }
}

/// A client configuration for TLS 1.2 and newer, with the system's authorities and those of `extra`.
///
/// It names its cryptography itself, so that no process-wide default has to be installed first.
pub fn client_config(extra: Option<&[u8]>) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(loaded.certs);
    if usable == 0 {
        // A service without notifications over TLS needs none; otherwise the delivery log reports it too.
        tracing::warn!("this system has no trusted certificates: notifications over TLS need --notification-ca-file");
    }
    for certificate in CertificateDer::pem_slice_iter(extra.unwrap_or_default()) {
        let certificate = certificate.map_err(|error| rustls::Error::General(error.to_string()))?;
        roots.add(certificate)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn describe(error: &io::Error) -> String {
    error.to_string().to_lowercase()
}
