//! A text message in the form in which sockets send it.

use bytes::{BufMut, Bytes, BytesMut};
use bytestring::ByteString;

/// The first byte of a frame that contains a whole text message (RFC 6455, 5.2).
const WHOLE_TEXT: u8 = 0x81;
/// Says that the length follows in two bytes.
const IN_TWO_BYTES: u8 = 126;
/// Says that the length follows in eight bytes.
const IN_EIGHT_BYTES: u8 = 127;

const LONGEST_HEADER: usize = 10;

/// A text message within its frame. Frames from a server have no mask, so the frame is built once and every socket sends
/// the same bytes.
#[derive(Debug, Clone)]
pub struct Text {
    frame: Bytes,
    /// Bytes before the text itself.
    header: usize,
}

impl Text {
    fn new(text: &str) -> Self {
        let mut frame = BytesMut::with_capacity(LONGEST_HEADER + text.len());
        frame.put_u8(WHOLE_TEXT);
        match (u8::try_from(text.len()), u16::try_from(text.len())) {
            (Ok(length), _) if length < IN_TWO_BYTES => frame.put_u8(length),
            (_, Ok(length)) => {
                frame.put_u8(IN_TWO_BYTES);
                frame.put_u16(length);
            }
            _ => {
                frame.put_u8(IN_EIGHT_BYTES);
                frame.put_u64(text.len() as u64);
            }
        }
        let header = frame.len();
        frame.put_slice(text.as_bytes());
        Self { frame: frame.freeze(), header }
    }

    /// Returns the text with the frame's header.
    pub fn into_frame(self) -> Bytes {
        self.frame
    }

    /// Returns the text without the frame's header.
    pub fn text(&self) -> ByteString {
        ByteString::try_from(self.frame.slice(self.header..)).unwrap_or_default()
    }

    /// Returns the size of the frame in bytes.
    pub fn bytes(&self) -> usize {
        self.frame.len()
    }
}

impl From<ByteString> for Text {
    fn from(text: ByteString) -> Self {
        Self::new(&text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_how_long_the_text_is() {
        let header_of = |length: usize| {
            let text = Text::from("x".repeat(length));
            assert_eq!(text.text().len(), length);
            assert_eq!(text.bytes(), text.header + length);
            text.frame.slice(..text.header).to_vec()
        };

        assert_eq!(header_of(0), [0x81, 0]);
        assert_eq!(header_of(125), [0x81, 125]);
        assert_eq!(header_of(126), [0x81, 126, 0, 126]);
        assert_eq!(header_of(65_535), [0x81, 126, 0xff, 0xff]);
        assert_eq!(header_of(65_536), [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_text_keeps_its_content() {
        let text = Text::from("größer");

        assert_eq!(&*text.text(), "größer");
        assert_eq!(text.into_frame(), [&[0x81, 8][..], "größer".as_bytes()].concat());
    }
}
