//! A service with a certificate of a private authority, behind an HTTP proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::support::{Outcome, Running, Site};

/// The service's name, which no resolver knows: only the proxy leads there.
const NAME: &str = "signalbox.test";

/// Accepts TLS with a certificate for [`NAME`], and passes on what is in it. Returns its address and the authority in PEM.
async fn tls_in_front_of(service: SocketAddr) -> (SocketAddr, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![NAME.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut outside) = acceptor.accept(stream).await else { return };
                let mut inside = TcpStream::connect(service).await.unwrap();
                let _ = copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    (address, issuer.pem())
}

/// An HTTP proxy that leads everybody to one address, and notes what it was asked for.
async fn proxy_to(target: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                log.lock().push(String::from_utf8(head).unwrap());
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let mut inside = TcpStream::connect(target).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut inside).await;
            });
        }
    });
    (address, asked)
}

struct Behind {
    site: Site,
    proxy: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    ca_file: PathBuf,
}

impl Behind {
    async fn start() -> Self {
        let site = Site::start_with(&["--public-url", &format!("https://{NAME}")]).await;
        let service = site.url.trim_start_matches("http://").parse().unwrap();
        let (tls, authority) = tls_in_front_of(service).await;
        let (proxy, asked) = proxy_to(tls).await;
        let ca_file = site.home.path().join("ca.pem");
        std::fs::write(&ca_file, authority).unwrap();
        Self { site, proxy, asked, ca_file }
    }

    async fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.site.plain_command(arguments);
        command.env("HTTPS_PROXY", format!("http://ada:secretive@{}", self.proxy));
        Running::start(command).outcome().await
    }
}

#[tokio::test]
async fn requests_and_sockets_go_through_the_proxy_to_a_private_authority() {
    let behind = Behind::start().await;
    let _agent = behind.site.agent("web-1", &[], &["--commands", "on"]).await;
    let token = behind.site.secret_file("token", &behind.site.token);
    let ca_file = behind.ca_file.to_str().unwrap();

    let url = format!("https://{NAME}");
    let untrusted = behind.run(&["login", &url, "--token-file", &token]).await;
    behind.run(&["login", &url, "--token-file", &token, "--ca-file", ca_file]).await.done();
    let output = behind.run(&["exec", "web-1", "--", "echo through"]).await;

    untrusted.refused(1, "name it with --ca-file");
    assert_eq!(output.done(), "through\n");
    let asked = behind.asked.lock();
    assert!(asked.iter().all(|head| head.starts_with("CONNECT signalbox.test:443 ")), "{asked:?}");
    // RFC 7617: the proxy's user name and password.
    assert!(asked[0].to_lowercase().contains("proxy-authorization: basic "), "{asked:?}");
}

#[tokio::test]
async fn a_proxy_that_is_away_is_said_without_its_password() {
    let behind = Behind::start().await;
    let token = behind.site.secret_file("token", &behind.site.token);
    let mut command = behind.site.plain_command(&["login", &format!("https://{NAME}"), "--token-file", &token]);
    command.env("HTTPS_PROXY", "http://ada:secretive@127.0.0.1:1");

    let outcome = Running::start(command).outcome().await;

    outcome.refused(1, "cannot reach the service: ");
    assert!(!outcome.stderr.contains("secretive"), "{outcome:?}");
}

#[tokio::test]
async fn a_service_that_is_not_trusted_has_started_no_batch() {
    let behind = Behind::start().await;
    let mut command = behind.site.command(&["exec", "--tag", "production", "--", "true"]);
    command.env("SIGNALBOX_URL", format!("https://{NAME}")).env("HTTPS_PROXY", format!("http://{}", behind.proxy));

    let outcome = Running::start(command).outcome().await;

    outcome.refused(1, "name it with --ca-file; the batch was not started\n");
}

#[tokio::test]
async fn a_file_without_certificates_is_wrong_usage() {
    let behind = Behind::start().await;
    let empty = behind.site.secret_file("empty.pem", "");

    let arguments = ["servers", "--ca-file", &empty];
    let mut command = behind.site.command(&arguments);
    command.env("SIGNALBOX_URL", format!("https://{NAME}"));
    let outcome = Running::start(command).outcome().await;

    outcome.refused(2, "holds no certificate in PEM");
}
