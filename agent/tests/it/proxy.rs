//! The way to the service through an HTTP proxy.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use signalbox_agent::updates::Settings;
use signalbox_agent::{Config, Exit};
use signalbox_protocol::agent::{OFFER_UPDATE, RELEASE_NAMESPACE, Request, ServiceMessage, UpdateOffer};
use signalbox_signing::Signers;
use signalbox_signing::ssh::{SshSignature, put_string, to_sign};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use uuid::Uuid;

use crate::agent::{Agent, KEY, PATIENCE, config, state_dir};
use crate::program::{end, line_with, program, send_signal};
use crate::service::{Peer, Service, accepted};
use crate::tls::Authority;

/// Accepts one `CONNECT`.
struct TestProxy {
    listener: TcpListener,
}

impl TestProxy {
    async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    fn address(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// The next connection, and what it requests.
    async fn accept(&self) -> (TcpStream, String) {
        let (stream, _) = timeout(PATIENCE, self.listener.accept()).await.expect("the proxy is used").unwrap();
        let mut reader = BufReader::new(stream);
        let mut asked = String::new();
        while !asked.ends_with("\r\n\r\n") {
            assert_ne!(timeout(PATIENCE, reader.read_line(&mut asked)).await.unwrap().unwrap(), 0);
        }
        assert!(reader.buffer().is_empty(), "nothing is sent before the answer");
        (reader.into_inner(), asked)
    }

    /// Connects the next connection to a service, whatever it requests. Returns what it requested.
    async fn lead_to(&self, service: &Service) -> String {
        let (mut stream, asked) = self.accept().await;
        let mut target = TcpStream::connect(("127.0.0.1", service.port())).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n").await.unwrap();
        tokio::spawn(async move { copy_bidirectional(&mut stream, &mut target).await });
        asked
    }
}

#[tokio::test]
async fn the_program_connects_through_the_proxy_of_its_environment() {
    let (service, proxy, state) = (Service::start().await, TestProxy::start().await, state_dir());
    let child = program(&["--url", "http://signalbox.invalid:8000", "--key", KEY, "--log", "trace", "--state-dir"])
        .arg(state.path())
        .env("HTTP_PROXY", format!("http://me:s%40crit@{}", proxy.address()))
        .spawn()
        .unwrap();

    let asked = proxy.lead_to(&service).await;
    let mut peer = service.accept_authenticated().await;
    peer.metrics().await;

    let target = "signalbox.invalid:8000";
    assert_eq!(
        asked,
        format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic bWU6c0Bjcml0\r\n\r\n")
    );
    send_signal(&child, rustix::process::Signal::TERM);
    let (code, log) = end(child).await;
    assert_eq!(code, Some(0));
    assert!(log.contains(&format!("through the proxy {}", proxy.address())), "{log}");
    assert!(!log.contains("crit"), "{log}");
}

#[tokio::test]
async fn tls_goes_through_to_the_service() {
    let (service, proxy, authority) = (Service::start().await, TestProxy::start().await, Authority::new());
    let agent = Agent::start(Config {
        ca_file: Some(authority.file()),
        proxy: Some(proxy.address().parse().unwrap()),
        ..config("https://signalbox.invalid")
    });

    let asked = proxy.lead_to(&service).await;
    let stream = authority.acceptor("signalbox.invalid").accept(service.accept_tcp().await).await.unwrap();
    let mut peer = Peer::upgrade(stream).await;
    let auth = peer.auth().await;
    peer.send(&accepted(None)).await;
    peer.metrics().await;

    assert_eq!(asked, "CONNECT signalbox.invalid:443 HTTP/1.1\r\nHost: signalbox.invalid:443\r\n\r\n");
    assert_eq!(auth.api_key, KEY);
    assert_eq!(agent.stop().await, Exit::Stopped);
}

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key that signs builds, as a line of allowed signers has it, and its offer of this program as version 99.0.0.
fn offer_of(program: &[u8]) -> (String, UpdateOffer) {
    let strings = |parts: [&[u8]; 2]| {
        let mut bytes = Vec::new();
        parts.iter().for_each(|part| put_string(&mut bytes, part).unwrap());
        bytes
    };
    let key = Ed25519KeyPair::generate().unwrap();
    let public = strings([b"ssh-ed25519", key.public_key().as_ref()]);
    let name = format!("signalbox-agent-linux-{}", std::env::consts::ARCH);
    let programs = json!({name: {"bytes": program.len(), "sha256": sha256(program)}});
    let release = json!({"v": 1, "version": "99.0.0", "programs": programs}).to_string();
    let signature = key.sign(&to_sign(RELEASE_NAMESPACE, release.as_bytes()).unwrap());
    let signature = strings([b"ssh-ed25519", signature.as_ref()]);
    let signature = SshSignature::new(public.clone(), RELEASE_NAMESPACE, signature).to_text().unwrap();
    (
        format!("release ssh-ed25519 {}\n", BASE64_STANDARD.encode(public)),
        UpdateOffer { release: BASE64_STANDARD.encode(release), signature },
    )
}

#[tokio::test]
async fn a_build_is_fetched_through_the_proxy_and_from_the_service_that_the_certificate_names() {
    let program = b"a program";
    let (pinned, offer) = offer_of(program);
    let (service, proxy, authority) = (Service::start().await, TestProxy::start().await, Authority::new());
    let state = state_dir();
    let agent = Agent::start(Config {
        ca_file: Some(authority.file()),
        proxy: Some(proxy.address().parse().unwrap()),
        state_dir: Some(state.path().to_owned()),
        updates: Settings::with(Some(Signers::parse_for(&pinned, RELEASE_NAMESPACE).unwrap())),
        ..config("https://signalbox.invalid/ops")
    });
    let acceptor = authority.acceptor("signalbox.invalid");
    proxy.lead_to(&service).await;
    let mut peer = Peer::upgrade(acceptor.accept(service.accept_tcp().await).await.unwrap()).await;
    peer.auth().await;
    peer.send(&accepted(None)).await;
    let request = Request {
        request_id: Uuid::from_u128(1),
        method: OFFER_UPDATE.to_owned(),
        params: serde_json::to_value(&offer).unwrap(),
        timeout_ms: None,
        by: None,
    };
    peer.send(&ServiceMessage::Request(request)).await;
    assert_eq!(peer.response().await.into_outcome(), Ok(json!({"version": "99.0.0"})));

    let asked = proxy.lead_to(&service).await;
    let mut stream = BufReader::new(acceptor.accept(service.accept_tcp().await).await.unwrap());
    let mut fetched = String::new();
    while !fetched.ends_with("\r\n\r\n") {
        assert_ne!(timeout(PATIENCE, stream.read_line(&mut fetched)).await.unwrap().unwrap(), 0);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await.unwrap();
    stream.write_all(program).await.unwrap();
    stream.flush().await.unwrap();
    peer.gone().await;

    assert_eq!(asked, "CONNECT signalbox.invalid:443 HTTP/1.1\r\nHost: signalbox.invalid:443\r\n\r\n");
    let path = format!("GET /ops/install/signalbox-agent-linux-{} HTTP/1.1\r\n", std::env::consts::ARCH);
    assert!(fetched.starts_with(&path) && fetched.contains("\r\nhost: signalbox.invalid\r\n"), "{fetched}");
    match agent.ended().await {
        Exit::Update(build) => assert_eq!(build.version.to_string(), "99.0.0"),
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(state.path().join("updates").join(sha256(program))).unwrap(), program);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_in_words_and_tried_again() {
    let (service, proxy, state) = (Service::start().await, TestProxy::start().await, state_dir());
    let mut child = program(&["--url", "http://signalbox.invalid", "--key", KEY, "--state-dir"])
        .arg(state.path())
        .env("ALL_PROXY", format!("me:secret@{}", proxy.address()))
        .spawn()
        .unwrap();

    let answers = [
        ("407 Proxy Authentication Required", "asks for a user name and a password"),
        ("403 Not in this house", "answered 403 Not in this house"),
    ];
    for (answer, words) in answers {
        let (mut stream, _) = proxy.accept().await;
        stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.unwrap();
        let said = line_with(&mut child, words).await;
        assert!(said.contains(&proxy.address()) && !said.contains("secret"), "{said}");
    }
    proxy.lead_to(&service).await;
    service.accept_authenticated().await;

    send_signal(&child, rustix::process::Signal::TERM);
    assert_eq!(end(child).await.0, Some(0));
}

#[tokio::test]
async fn a_proxy_of_an_unknown_kind_ends_it_with_2() {
    let child = program(&["--url", "https://signalbox.invalid", "--key", KEY, "--state-dir", "/nowhere"])
        .env("https_proxy", "socks5://me:secret@127.0.0.1:1080")
        .spawn()
        .unwrap();

    let (code, log) = end(child).await;

    assert_eq!(code, Some(2));
    assert_eq!(log, "signalbox-agent: https_proxy: a proxy of the kind socks5:// is not supported, only http://\n");
}
