//! Joins the fragments of a message. The gate has bounded their sum.

use actix_http::ws::Item;
use bytes::{Bytes, BytesMut};
use bytestring::ByteString;

/// A whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompleteMessage {
    Text(ByteString),
    Binary(Bytes),
}

/// A fragment out of order, or text that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed fragments")]
pub struct Malformed;

/// The message whose fragments are arriving.
#[derive(Default)]
pub struct Assembly {
    parts: Option<(Kind, BytesMut)>,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Binary,
}

impl Assembly {
    /// Adds a fragment. Returns the message after its last fragment.
    pub fn add(&mut self, item: Item) -> Result<Option<CompleteMessage>, Malformed> {
        match item {
            Item::FirstText(bytes) => self.begin(Kind::Text, &bytes),
            Item::FirstBinary(bytes) => self.begin(Kind::Binary, &bytes),
            Item::Continue(bytes) => {
                self.parts.as_mut().ok_or(Malformed)?.1.extend_from_slice(&bytes);
                Ok(None)
            }
            Item::Last(bytes) => {
                let (kind, mut all) = self.parts.take().ok_or(Malformed)?;
                all.extend_from_slice(&bytes);
                match kind {
                    Kind::Binary => Ok(Some(CompleteMessage::Binary(all.freeze()))),
                    Kind::Text => ByteString::try_from(all.freeze())
                        .map(|text| Some(CompleteMessage::Text(text)))
                        .map_err(|_| Malformed),
                }
            }
        }
    }

    fn begin(&mut self, kind: Kind, bytes: &Bytes) -> Result<Option<CompleteMessage>, Malformed> {
        if self.parts.is_some() {
            return Err(Malformed);
        }
        self.parts = Some((kind, BytesMut::from(bytes.as_ref())));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static [u8]) -> Bytes {
        Bytes::from_static(text)
    }

    #[test]
    fn fragments_become_one_message() {
        let mut assembly = Assembly::default();

        assert_eq!(assembly.add(Item::FirstText(bytes(b"a"))), Ok(None));
        assert_eq!(assembly.add(Item::Continue(bytes(b"b"))), Ok(None));
        assert_eq!(assembly.add(Item::Last(bytes(b"c"))), Ok(Some(CompleteMessage::Text("abc".into()))));
        assert_eq!(assembly.add(Item::FirstBinary(bytes(&[1]))), Ok(None));
        assert_eq!(assembly.add(Item::Last(bytes(&[2]))), Ok(Some(CompleteMessage::Binary(bytes(&[1, 2])))));
    }

    #[test]
    fn fragments_out_of_order_are_malformed() {
        let mut assembly = Assembly::default();

        assert_eq!(assembly.add(Item::Continue(bytes(b"b"))), Err(Malformed));
        assert_eq!(assembly.add(Item::FirstText(bytes(b"a"))), Ok(None));
        assert_eq!(assembly.add(Item::FirstText(bytes(b"a"))), Err(Malformed));
    }

    #[test]
    fn joined_text_must_be_utf8() {
        let mut assembly = Assembly::default();
        assembly.add(Item::FirstText(bytes(&[0xc3]))).unwrap();

        assert_eq!(assembly.add(Item::Last(bytes(&[0x28]))), Err(Malformed));
    }
}
