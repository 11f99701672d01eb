//! Certificates and host names are always verified.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use signalbox_agent::{Config, Exit};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::agent::{Agent, KEY, PATIENCE, config};
use crate::service::{Peer, Service, accepted};

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Each authority has a name of its own, as in the real world.
        let dir = tempfile::tempdir().unwrap();
        params.distinguished_name.push(DnType::CommonName, dir.path().to_str().unwrap());
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, dir }
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// Accepts TLS with a certificate for `name`.
    pub fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        Self::accepting(certificate.der().clone(), &key)
    }

    /// Accepts TLS with a certificate for `localhost` from the first day of one year to that of another.
    pub fn dated(&self, from: i32, until: i32) -> TlsAcceptor {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Self::accepting(certificate.der().clone(), &key)
    }

    /// Accepts TLS with the authority's own certificate, a common result of making one by hand.
    pub fn itself(&self, name: &str) -> TlsAcceptor {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(self.file(), certificate.pem()).unwrap();
        Self::accepting(certificate.der().clone(), &key)
    }

    fn accepting(certificate: CertificateDer<'static>, key: &KeyPair) -> TlsAcceptor {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// An agent that connects to `localhost` over TLS and trusts only `trusted`.
fn agent(service: &Service, trusted: &Authority) -> Agent {
    let url = format!("https://localhost:{}", service.port());
    Agent::start(Config { ca_file: Some(trusted.file()), ..config(&url) })
}

#[tokio::test]
async fn a_private_authority_that_is_named_is_trusted() {
    let (service, authority) = (Service::start().await, Authority::new());
    let agent = agent(&service, &authority);

    let stream = authority.acceptor("localhost").accept(service.accept_tcp().await).await.unwrap();
    let mut peer = Peer::upgrade(stream).await;
    let auth = peer.auth().await;
    peer.send(&accepted(None)).await;
    peer.metrics().await;

    assert_eq!(auth.api_key, KEY);
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_unknown_authority_never_sees_the_key() {
    let (service, authority, other) = (Service::start().await, Authority::new(), Authority::new());
    let agent = agent(&service, &other);

    let refused = authority.acceptor("localhost").accept(service.accept_tcp().await).await;

    let reason = refused.err().unwrap().to_string();
    assert!(reason.contains("UnknownCA"), "{reason}");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_authority_that_replaces_another_is_trusted_without_a_restart() {
    let (service, old, new) = (Service::start().await, Authority::new(), Authority::new());
    let agent = agent(&service, &old);
    let refused = new.acceptor("localhost").accept(service.accept_tcp().await).await;

    std::fs::copy(new.file(), old.file()).unwrap();
    let connected = tokio::time::timeout(PATIENCE, async {
        loop {
            // An attempt that began with the old one is refused.
            if let Ok(stream) = new.acceptor("localhost").accept(service.accept_tcp().await).await {
                return stream;
            }
        }
    });
    let mut peer = Peer::upgrade(connected.await.unwrap()).await;

    assert!(refused.is_err());
    assert_eq!(peer.auth().await.api_key, KEY);
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_certificate_for_another_name_never_sees_the_key() {
    let (service, authority) = (Service::start().await, Authority::new());
    let agent = agent(&service, &authority);

    let refused = authority.acceptor("other.example.com").accept(service.accept_tcp().await).await;

    let reason = refused.err().unwrap().to_string();
    assert!(reason.contains("BadCertificate") || reason.contains("CertificateUnknown"), "{reason}");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_invalid_authority_file_ends_the_agent_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    std::fs::write(&file, "no certificate").unwrap();
    let config = Config { ca_file: Some(file.clone()), ..config("https://localhost:1") };

    let exit = Agent::start(config).ended().await;

    let expected = format!("--ca-file {}: holds no certificate in PEM", file.display());
    assert_eq!((exit.code(), exit), (2, Exit::Misconfigured(expected)));
}
