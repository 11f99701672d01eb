//! The line that other tests cut: its promises to them.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::proxy::Proxy;
use crate::support::{eventually, in_time};

/// A server that sends everything back.
async fn echo() -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    actix_web::rt::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            actix_web::rt::spawn(async move {
                let (mut from, mut to) = stream.split();
                _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    Proxy::to(address).await
}

async fn said_again(stream: &mut TcpStream, said: &[u8]) -> std::io::Result<()> {
    stream.write_all(said).await?;
    let mut heard = vec![0; said.len()];
    in_time("an echo", stream.read_exact(&mut heard)).await?;
    assert_eq!(heard, said);
    Ok(())
}

#[actix_web::test]
async fn what_is_said_on_a_silent_line_arrives_when_it_is_whole() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    said_again(&mut stream, b"one").await.unwrap();

    proxy.silence();
    stream.write_all(b"two").await.unwrap();
    let mut late = TcpStream::connect(proxy.address).await.unwrap();
    late.write_all(b"three").await.unwrap();
    let mut nothing = [0];
    tokio::select! {
        heard = stream.read(&mut nothing) => panic!("heard on a silent line: {heard:?}"),
        () = proxy_has(&proxy, 2) => {}
    }
    proxy.heal();

    let (mut second, mut third) = ([0; 3], [0; 5]);
    in_time("the second", stream.read_exact(&mut second)).await.unwrap();
    in_time("the third", late.read_exact(&mut third)).await.unwrap();
    assert_eq!((&second, &third), (b"two", b"three"));
}

#[actix_web::test]
async fn a_line_that_refuses_resets_what_is_open_and_what_comes() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    said_again(&mut stream, b"one").await.unwrap();

    proxy.refuse();

    let error = in_time("the reset", stream.read_u8()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // The reset may come before the client knows that it is connected.
    if let Ok(mut refused) = TcpStream::connect(proxy.address).await {
        in_time("the refusal", refused.read_u8()).await.unwrap_err();
    }
    proxy_has(&proxy, 0).await;
    proxy.heal();
    said_again(&mut TcpStream::connect(proxy.address).await.unwrap(), b"two").await.unwrap();
}

#[actix_web::test]
async fn after_a_reset_the_next_connection_passes() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    said_again(&mut stream, b"one").await.unwrap();

    proxy.reset();

    in_time("the reset", stream.read_u8()).await.unwrap_err();
    said_again(&mut TcpStream::connect(proxy.address).await.unwrap(), b"two").await.unwrap();
}

async fn proxy_has(proxy: &Proxy, connections: usize) {
    eventually("the proxy's connections", || async { (proxy.connections() == connections).then_some(()) }).await;
}
