//! The host names under which a service on loopback answers: a page whose own name leads here must not read it.

use serde_json::Value;

use crate::support::raw::RawSocket;
use crate::support::{TestService, behind_a_proxy};

/// Names that only lead to this machine, wherever they are resolved.
const OWN: [&str; 7] = ["localhost", "LOCALHOST:8000", "localhost.", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:8000"];

/// Names that their owner can have lead anywhere.
const OTHERS: [&str; 5] =
    ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"];

/// The status and the body of the answer to a request for this host.
async fn asked(service: &TestService, path: &str, headers: &str) -> (u16, String) {
    let mut socket = RawSocket::connect(service.address).await;
    let request = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    socket.write(request.as_bytes()).await.unwrap();
    let answer = String::from_utf8_lossy(&socket.read_to_end().await).into_owned();
    let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"));
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    (status, body)
}

#[actix_web::test]
async fn only_names_of_this_machine_are_answered() {
    let service = TestService::start().await;

    for host in OWN {
        assert_eq!(asked(&service, "/healthz", &format!("Host: {host}\r\n")).await.0, 200, "{host}");
    }
    for (host, path) in
        OTHERS.into_iter().flat_map(|host| ["/", "/api/v1/service", "/ws/fleet", "/healthz"].map(|path| (host, path)))
    {
        // A page's own headers about a proxy are ignored.
        let headers = format!("Host: {host}\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: localhost\r\n");
        let (status, body) = asked(&service, path, &headers).await;
        assert_eq!(status, 421, "{host} {path}: {body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&body["code"], &body["status_code"]), (&"host_not_allowed".into(), &421.into()));
    }
}

#[actix_web::test]
async fn the_public_name_and_what_a_trusted_proxy_passes_on_are_answered() {
    let public =
        TestService::start_with(|config| config.public_url = Some("https://box.example:8443/ops".into())).await;
    let proxied = TestService::start_with(behind_a_proxy).await;

    for (host, expected) in [("box.example", 200), ("Box.Example:443", 200), ("evil.example", 421), ("localhost", 200)]
    {
        assert_eq!(asked(&public, "/healthz", &format!("Host: {host}\r\n")).await.0, expected, "{host}");
    }
    for host in OWN.into_iter().chain(OTHERS) {
        assert_eq!(asked(&proxied, "/healthz", &format!("Host: {host}\r\n")).await.0, 200, "{host}");
    }
}

#[actix_web::test]
async fn a_service_that_others_can_reach_has_any_name() {
    let service = TestService::start_with(|config| config.listen = "0.0.0.0:0".parse().unwrap()).await;

    for host in OWN.into_iter().chain(OTHERS) {
        assert_eq!(asked(&service, "/healthz", &format!("Host: {host}\r\n")).await.0, 200, "{host}");
    }
}
