//! Attacks of a hostile client on any socket, and how the service must end them.

use std::time::Duration;

use super::raw::{BINARY, CONTINUATION, End, FIN, PING, RawSocket, TEXT, frame, header};

/// RFC 6455's own close codes for a broken frame, a broken text and a message that is too large, and ours.
pub const PROTOCOL_ERROR: u16 = 1002;
pub const INVALID_TEXT: u16 = 1007;
pub const TOO_LARGE: u16 = 1009;
pub const MALFORMED: u16 = 4400;

const GIBIBYTE: u64 = 1 << 30;

/// What a flood sends: far more than the service may store in memory.
const FLOOD_BYTES: usize = 256 * 1024 * 1024;

/// The allowed growth of the service's memory under a flood: a quarter of what is sent, and far more than the buffers of a
/// legitimate socket.
pub const MAX_GROWTH_MEBIBYTES: u64 = 64;

/// How long a flood lasts at most.
struct Stamina {
    /// A flood that the service has not read for this long has been held back for good.
    stall: Duration,
    /// However slowly the service takes it: a service that buffers has gigabytes by then.
    time: Duration,
}

const STAMINA: Stamina = Stamina { stall: Duration::from_secs(2), time: Duration::from_secs(6) };

/// For a flood that the service has to end, because it may be slow to read this much.
const LONG_STAMINA: Stamina = Stamina { stall: Duration::from_secs(10), time: Duration::from_secs(30) };

/// Declares a frame of 1 GiB and sends none of it: refused at its header.
pub async fn declare_a_huge_frame(mut socket: RawSocket) {
    socket.write(&header(FIN | BINARY, GIBIBYTE)).await.unwrap();

    socket.expect_close(TOO_LARGE).await;
}

/// Declares a frame of 1 GiB and sends as much of it as the service takes.
pub async fn send_a_huge_frame(mut socket: RawSocket) {
    // The service may have closed it at the header.
    let _ = socket.write(&header(FIN | BINARY, GIBIBYTE)).await;

    flood(&mut socket, &[0; 64 * 1024], STAMINA).await;

    socket.expect_end(&[TOO_LARGE]).await;
}

/// Pings as fast as it can and reads no pong.
pub async fn flood_with_pings(mut socket: RawSocket) {
    flood(&mut socket, &frame(FIN | PING, &[7; 125]).repeat(64), STAMINA).await;
}

/// Sends small messages as fast as it can and reads nothing.
pub async fn flood_with_messages(mut socket: RawSocket, text: &str) {
    flood(&mut socket, &frame(FIN | TEXT, text.as_bytes()).repeat(64), STAMINA).await;
}

/// Begins a message, and continues it without end with fragments of this many bytes.
pub async fn continue_without_end(mut socket: RawSocket, fragment_bytes: usize) {
    let fragment = frame(CONTINUATION, &vec![b' '; fragment_bytes]);
    socket.write(&frame(TEXT, b" ")).await.unwrap();

    flood(&mut socket, &fragment.repeat(64 * 1024 / fragment.len().min(64 * 1024)), LONG_STAMINA).await;

    socket.expect_end(&[TOO_LARGE, MALFORMED, PROTOCOL_ERROR]).await;
}

/// Frames that RFC 6455 forbids to a client, by what is wrong with them.
pub fn broken_frames() -> Vec<(&'static str, Vec<u8>)> {
    let mut unmasked = vec![FIN | TEXT, 2];
    unmasked.extend(b"{}");
    let long_ping = frame(FIN | PING, &[0; 126]);
    let new_message_inside_another = [frame(TEXT, b"{"), frame(FIN | TEXT, b"{}")].concat();
    vec![
        ("an unmasked frame", unmasked),
        ("a reserved bit", frame(FIN | 0x40 | TEXT, b"{}")),
        ("a reserved data opcode", frame(FIN | 0x3, b"{}")),
        ("a reserved control opcode", frame(FIN | 0xB, b"")),
        ("a control frame over 125 bytes", long_ping),
        ("a fragmented control frame", frame(PING, b"half")),
        ("a continuation of nothing", frame(FIN | CONTINUATION, b"{}")),
        ("a message inside a fragmented one", new_message_inside_another),
        ("a length with its highest bit set", header(FIN | BINARY, 1 << 63)),
    ]
}

/// Sends a broken frame, and expects that the service ends the connection for it.
pub async fn send_broken_frame(mut socket: RawSocket, what: &str, bytes: &[u8]) {
    socket.write(bytes).await.unwrap();

    let end = socket.end().await;
    let allowed = [PROTOCOL_ERROR, MALFORMED, TOO_LARGE].map(End::Closed);
    assert!(end == End::Cut || allowed.contains(&end), "{what}: {end:?}");
}

/// Writes `chunk` again and again, until all is offered or the service ends the connection or takes no more.
async fn flood(socket: &mut RawSocket, chunk: &[u8], stamina: Stamina) {
    let writing = async {
        for _ in 0..FLOOD_BYTES / chunk.len() {
            match tokio::time::timeout(stamina.stall, socket.write(chunk)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    };
    // Whether it ran out of bytes, of patience or of a peer: only the service's memory afterwards matters.
    let _ = tokio::time::timeout(stamina.time, writing).await;
}
