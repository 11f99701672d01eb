//! Errors on the way to the service, as the program reports them in words.

use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::agent::{KEY, PATIENCE, state_dir};
use crate::program::program;
use crate::service::{Peer, Service, accepted};
use crate::tls::Authority;

/// The first line of its log that says why it is not connected.
async fn complaint(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it complains").unwrap().expect("it continues");
        if line.contains("not connected") {
            return line;
        }
    }
}

#[tokio::test]
async fn errors_on_the_way_are_explained() {
    let state = state_dir();
    // The scheme, the answer there, and what the log says about it.
    let cases = [
        ("https", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "does not speak TLS"),
        ("http", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "the address begins with https://"),
        ("http", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "is this the address of a Signalbox"),
        ("http", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "the service behind it is away"),
        (
            "http",
            "HTTP/1.1 301 Moved Permanently\r\nLocation: https://box.example/\r\nContent-Length: 0\r\n\r\n",
            "leads elsewhere to https://box.example/",
        ),
        ("http", "\x15\x03\x03\x00\x02\x02\x46", "only over TLS with https://"),
    ];

    for (scheme, answer, expected) in cases {
        // A service of its own: the agent of the previous case may have tried again.
        let service = Service::start().await;
        let url = format!("{scheme}://localhost:{}", service.port());
        let state_dir = state.path().to_str().unwrap();
        let mut child = program(&["--url", &url, "--key", KEY, "--state-dir", state_dir]).spawn().unwrap();
        let mut tcp = service.accept_tcp().await;
        let mut request = [0; 16];
        tcp.read_exact(&mut request).await.unwrap();
        tcp.write_all(answer.as_bytes()).await.unwrap();

        let complaint = complaint(&mut child).await;

        assert!(complaint.contains(expected), "{answer:?}: {complaint}");
        child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn the_error_of_an_untrusted_certificate_says_what_to_do() {
    let state = state_dir();
    let (authority, other, own) = (Authority::new(), Authority::new(), Authority::new());
    let cases = [
        (authority.acceptor("localhost"), &other, "no authority that is trusted here has signed its certificate"),
        (authority.acceptor("other"), &authority, "its certificate is for another name than localhost"),
        (authority.dated(2001, 2002), &authority, "its certificate has expired, or this machine's clock is ahead"),
        (authority.dated(2201, 2202), &authority, "is not valid yet, or this machine's clock is behind"),
        (own.itself("localhost"), &own, "its certificate is an authority's own"),
    ];

    for (acceptor, trusted, expected) in cases {
        let service = Service::start().await;
        let url = format!("https://localhost:{}", service.port());
        let (state_dir, ca_file) = (state.path().to_str().unwrap(), trusted.file());
        let arguments = ["--url", &url, "--key", KEY, "--state-dir", state_dir, "--ca-file", ca_file.to_str().unwrap()];
        let mut child = program(&arguments).spawn().unwrap();
        assert!(acceptor.accept(service.accept_tcp().await).await.is_err());

        let complaint = complaint(&mut child).await;

        assert!(complaint.contains(expected), "{complaint}");
        let is_distrusted = expected.contains("authority");
        assert_eq!(complaint.contains("--ca-file"), is_distrusted, "{complaint}");
        child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn the_program_speaks_tls_without_any_preparation() {
    let (service, authority, state) = (Service::start().await, Authority::new(), state_dir());
    let url = format!("wss://localhost:{}", service.port());
    let child = program(&["--url", &url, "--key", KEY])
        .args([Path::new("--ca-file"), &authority.file(), Path::new("--state-dir"), state.path()])
        .spawn()
        .unwrap();

    let stream = authority.acceptor("localhost").accept(service.accept_tcp().await).await.unwrap();
    let mut peer = Peer::upgrade(stream).await;
    peer.auth().await;
    peer.send(&accepted(None)).await;

    assert!(!peer.metrics().await.samples.is_empty());
    drop(child);
}
