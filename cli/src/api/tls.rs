//! Which certificates are trusted. They are always verified; there is no option to disable that.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::Failure;

/// TLS 1.2 and newer, with the system's authorities and those of a file.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    // Those that cannot be parsed are left out: systems have some.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let fault = |what: String| Failure::usage(format!("--ca-file {}: {what}", path.display()));
        let text = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| fault(error.to_string()))?;
            roots.add(certificate).map_err(|error| fault(error.to_string()))?;
        }
        if roots.len() == before {
            return Err(fault("holds no certificate in PEM".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Failure::failed(format!("cannot use TLS: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Without authorities, for services that are reached without TLS: reading the system's takes longer than a call.
pub fn without_roots() -> Result<ClientConfig, Failure> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Failure::failed(format!("cannot use TLS: {error}")))?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}
