//! Entry points for fuzzers, and the test that replays their findings.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use actix_http::ws::{Item, OpCode, Parser};
use actix_web::error::PayloadError;
use bytes::{Bytes, BytesMut};
use futures_util::Stream;

use super::assembly::{Assembly, CompleteMessage};
use super::gate::{Gate, GateControl};
use crate::registry::Heartbeat;

const MAX_MESSAGE: usize = 4096;

/// Checks the gate with what a peer may send: it hands over whole frames of a bounded size in order, and no fragmented
/// message exceeds the limit. The first byte says how the bytes are split into chunks.
pub fn socket(data: &[u8]) {
    let Some((cut, sent)) = data.split_first() else { return };
    let chunks: Vec<Bytes> = sent.chunks(usize::from(*cut).max(1)).map(Bytes::copy_from_slice).collect();
    let control = GateControl::new(MAX_MESSAGE, Arc::new(Heartbeat::default()));
    let mut gate = Gate::new(futures_util::stream::iter(chunks.into_iter().map(Ok::<_, PayloadError>)), control);
    let mut context = Context::from_waker(Waker::noop());
    let (mut assembly, mut handed_over, mut is_sound) = (Assembly::default(), 0, true);
    loop {
        match Pin::new(&mut gate).poll_next(&mut context) {
            // The gate pauses after each frame, so that the actor decodes it.
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                // Two bytes and at most twelve more in front of the payload.
                assert!(frame.len() <= MAX_MESSAGE + 14, "a frame of {} bytes", frame.len());
                assert_eq!(sent.get(handed_over..handed_over + frame.len()), Some(frame.as_ref()), "another frame");
                handed_over += frame.len();
                is_sound = is_sound && decode(&mut assembly, &frame);
            }
            Poll::Ready(Some(Err(_)) | None) => break,
        }
    }
}

/// Takes a frame apart as the codec of actix-web-actors does. Returns false where the codec refuses the frame.
fn decode(assembly: &mut Assembly, frame: &[u8]) -> bool {
    let mut buffer = BytesMut::from(frame);
    let Ok(Some((is_final, opcode, payload))) = Parser::parse(&mut buffer, true, MAX_MESSAGE) else { return false };
    let payload = payload.map(BytesMut::freeze).unwrap_or_default();
    let item = match (opcode, is_final) {
        (OpCode::Text, false) => Item::FirstText(payload),
        (OpCode::Binary, false) => Item::FirstBinary(payload),
        (OpCode::Continue, false) => Item::Continue(payload),
        (OpCode::Continue, true) => Item::Last(payload),
        _ => return true,
    };
    match assembly.add(item) {
        Ok(Some(CompleteMessage::Text(text))) => {
            assert!(text.len() <= MAX_MESSAGE, "a message of {} bytes", text.len())
        }
        Ok(Some(CompleteMessage::Binary(bytes))) => {
            assert!(bytes.len() <= MAX_MESSAGE, "a message of {} bytes", bytes.len())
        }
        Ok(None) => {}
        Err(_) => return false,
    }
    true
}
