//! The bytes that a socket still has to send.

use bytes::{Buf, Bytes, BytesMut};

/// What an actor has said and its peer has not got.
#[derive(Debug, Default)]
pub struct Unwritten {
    /// A text alone, which many sockets may share: it is sent from where it lies.
    alone: Bytes,
    /// Several texts, which are sent together; empty while there is one alone.
    together: BytesMut,
}

impl Unwritten {
    pub fn len(&self) -> usize {
        self.alone.len() + self.together.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn add(&mut self, said: Bytes) {
        if self.is_empty() {
            self.alone = said;
            return;
        }
        let alone = std::mem::take(&mut self.alone);
        self.together.reserve(alone.len() + said.len());
        self.together.extend_from_slice(&alone);
        self.together.extend_from_slice(&said);
    }

    /// What is to be sent next: all of it.
    pub fn unsent(&self) -> &[u8] {
        if self.alone.is_empty() { &self.together } else { &self.alone }
    }

    pub fn advance(&mut self, written: usize) {
        if self.alone.is_empty() {
            self.together.advance(written);
        } else {
            self.alone.advance(written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_alone_is_not_copied_and_several_are_sent_together() {
        let shared = Bytes::from_static(b"one ");
        let mut unwritten = Unwritten::default();

        unwritten.add(shared.clone());
        assert_eq!(unwritten.unsent().as_ptr(), shared.as_ptr());
        unwritten.advance(1);
        unwritten.add(Bytes::from_static(b"two "));
        unwritten.add(Bytes::from_static(b"three"));
        assert_eq!((unwritten.unsent(), unwritten.len()), (&b"ne two three"[..], 12));
        unwritten.advance(7);
        assert_eq!(unwritten.unsent(), b"three");
        unwritten.add(Bytes::new());
        unwritten.advance(5);
        assert!(unwritten.is_empty());
    }
}
