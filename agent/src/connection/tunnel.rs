//! A tunnel through an HTTP proxy: `CONNECT` (RFC 9110, 9.3.6), followed by raw bytes.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::proxy::Proxy;
use crate::url::ServiceUrl;

/// The longest answer of a proxy: some explain themselves in headers.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How many characters of a proxy's own words are passed on.
const MAX_REASON: usize = 100;

/// Why a proxy cannot be used. Never with its password.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    #[error("asks for a user name and a password, or refuses those that it was given")]
    Credentials,
    #[error("answered {status} {reason}")]
    Refused { status: u16, reason: String },
    #[error("gave an answer that is not HTTP")]
    NotHttp,
    #[error("hung up: {0}")]
    Broken(#[from] std::io::Error),
    #[error("took too long to answer")]
    TimedOut,
}

/// Asks the proxy at the other end of `tcp` to connect to the service.
pub async fn open(tcp: &mut TcpStream, proxy: &Proxy, url: &ServiceUrl, step: Duration) -> Result<(), TunnelError> {
    let asked = async {
        tcp.write_all(request(proxy, url).as_bytes()).await?;
        read_head(tcp).await
    };
    let head = timeout(step, asked).await.map_err(|_| TunnelError::TimedOut)??;
    match status(&head) {
        Some((200..=299, _)) => Ok(()),
        Some((407, _)) => Err(TunnelError::Credentials),
        Some((status, reason)) => Err(TunnelError::Refused { status, reason }),
        None => Err(TunnelError::NotHttp),
    }
}

fn request(proxy: &Proxy, url: &ServiceUrl) -> String {
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let target = format!("{host}:{}", url.port);
    let authorization =
        proxy.authorization().map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n")
}

/// Reads up to the blank line and not a byte further: what follows is the service's.
async fn read_head(tcp: &mut TcpStream) -> Result<Vec<u8>, TunnelError> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        if head.len() == MAX_HEAD_BYTES {
            return Err(TunnelError::NotHttp);
        }
        head.push(tcp.read_u8().await?);
    }
    Ok(head)
}

/// The status and its reason, in characters that are safe in a log.
fn status(head: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(head);
    let (version, rest) = text.lines().next()?.split_once(' ')?;
    if !version.starts_with("HTTP/1.") {
        return None;
    }
    let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let plain = |character: &char| character.is_ascii_graphic() || *character == ' ';
    Some((code.trim().parse().ok()?, reason.chars().filter(plain).take(MAX_REASON).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_named_with_its_port_and_the_password_encoded() {
        let proxy: Proxy = "http://me:s%40crit@proxy:3128".parse().unwrap();

        let asked = request(&proxy, &"https://box.example.com".parse().unwrap());
        let v6 = request(&"proxy".parse().unwrap(), &"http://[2001:db8::1]:8000".parse().unwrap());

        assert_eq!(
            asked,
            "CONNECT box.example.com:443 HTTP/1.1\r\nHost: box.example.com:443\r\n\
             Proxy-Authorization: Basic bWU6c0Bjcml0\r\n\r\n"
        );
        assert_eq!(v6, "CONNECT [2001:db8::1]:8000 HTTP/1.1\r\nHost: [2001:db8::1]:8000\r\n\r\n");
    }

    #[test]
    fn answers_of_proxies_are_parsed() {
        type Case = (&'static [u8], Option<(u16, &'static str)>);
        let cases: [Case; 5] = [
            (b"HTTP/1.1 200 Connection established\r\n\r\n", Some((200, "Connection established"))),
            (b"HTTP/1.0 403\r\n\r\n", Some((403, ""))),
            (b"HTTP/1.1 502 Bad\x1b[31m\x07 Gateway\r\n\r\n", Some((502, "Bad[31m Gateway"))),
            (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", None),
            (b"\r\n\r\n", None),
        ];

        for (head, expected) in cases {
            assert_eq!(status(head), expected.map(|(status, reason)| (status, reason.to_owned())));
        }
    }
}
