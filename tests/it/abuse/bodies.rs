//! Bodies that are useless, slow, or many and large.

use std::time::{Duration, Instant};

use signalbox::shares::Share;
use tokio::io::AsyncWriteExt;
use tokio::time::interval;

use super::{HONEST, STRANGER};
use crate::support::raw::RawSocket;
use crate::support::socket::connect_from;
use crate::support::{Client, PATIENCE, TestService, eventually};

/// Sends a request with a chunked body of which only the first chunk is sent. Returns the status of the answer.
async fn ask(service: &TestService, line: &str, headers: &str) -> (RawSocket, u16) {
    let mut socket = RawSocket::connect(service.address).await;
    let request =
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{headers}\r\n5\r\nhello\r\n");
    socket.write(request.as_bytes()).await.unwrap();
    let status = socket.status().await;
    (socket, status)
}

#[actix_web::test]
async fn a_body_that_trickles_on_after_the_answer_is_cut() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let bearer = format!("Authorization: Bearer {}\r\n", account.token);
    let asked = [
        ("POST /nope", "", 404),
        ("POST /api/v1/servers", "", 401),
        ("PATCH /api/v1/servers", "", 405),
        ("GET /api/v1/servers", bearer.as_str(), 200),
        ("GET /healthz", "", 200),
    ];

    for (line, headers, expected) in asked {
        let (mut socket, status) = ask(&service, line, headers).await;
        assert_eq!(status, expected, "{line}");

        let (began, mut pace) = (Instant::now(), interval(Duration::from_millis(50)));
        while socket.write(b"1\r\nx\r\n").await.is_ok() {
            assert!(began.elapsed() < PATIENCE / 3, "{line}: its body is still taken");
            pace.tick().await;
        }
    }
}

#[actix_web::test]
async fn a_body_of_declared_length_that_trickles_on_after_the_answer_is_cut() {
    let service = TestService::start().await;

    for (line, expected) in [("POST /nope", 404), ("POST /api/v1/servers", 401), ("PATCH /api/v1/servers", 405)] {
        let mut socket = RawSocket::connect(service.address).await;
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nhello");
        socket.write(request.as_bytes()).await.unwrap();
        assert_eq!(socket.status().await, expected, "{line}");

        let (began, mut pace) = (Instant::now(), interval(Duration::from_millis(50)));
        while socket.write(b"x").await.is_ok() {
            assert!(began.elapsed() < PATIENCE / 3, "{line}: its body is still taken");
            pace.tick().await;
        }
    }
}

#[actix_web::test]
async fn a_chunked_body_that_is_read_leaves_the_connection_open() {
    let service = TestService::start().await;
    let mut socket = RawSocket::connect(service.address).await;
    let request = "POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                   Content-Type: application/x-www-form-urlencoded\r\n\r\n17\r\nusername=a&password=bcd\r\n0\r\n\r\n";

    for _ in 0..2 {
        socket.write(request.as_bytes()).await.unwrap();
        assert_eq!(socket.status().await, 401);
        socket.pass_over_body().await;
    }
}

#[actix_web::test]
async fn a_large_body_that_finds_no_place_is_answered_that_the_service_is_busy() {
    let service = TestService::start_with(|config| config.shares.bodies.places = 1).await;
    let _place = service.state.limits.shares.bodies.try_enter(Share::Service).unwrap();
    let form = "x".repeat(100_000);

    let answer = service.client.post("/auth/login").raw("application/x-www-form-urlencoded", form).send().await;

    assert_eq!((answer.status, answer.header("Retry-After")), (503, "2"), "{answer}");
}

/// Bodies that are large enough to be bounded, and never end.
async fn endless_bodies(service: &TestService, count: usize) -> Vec<tokio::net::TcpStream> {
    let mut sockets = Vec::new();
    for _ in 0..count {
        let mut socket = connect_from(STRANGER, service.address).await;
        let head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\
                    Content-Type: application/x-www-form-urlencoded\r\n\r\nusername=";
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&[b'a'; 40_000]).await.unwrap();
        sockets.push(socket);
    }
    sockets
}

#[actix_web::test]
async fn large_bodies_of_one_address_leave_room_for_others() {
    let service = TestService::start_with(|config| config.shares.bodies.places = 4).await;
    let bodies = service.state.limits.shares.bodies.clone();
    let _endless = endless_bodies(&service, 6).await;
    eventually("two are read and four wait", || async {
        ((bodies.inside(), bodies.waiting()) == (2, 4)).then_some(())
    })
    .await;
    let honest = Client::from_address(format!("http://{}/api/v1", service.address), HONEST);
    let form = "x".repeat(100_000);

    let answer = honest.post("/auth/login").raw("application/x-www-form-urlencoded", form).send().await;

    assert_eq!(answer.status, 422, "{answer}");
    assert_eq!((bodies.inside(), bodies.waiting()), (2, 4), "it did not wait for them");
}
