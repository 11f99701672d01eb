//! What is typed, as text.

use std::io::Read;

use tokio::sync::mpsc;

/// Pieces that wait while the service is slow; then the terminal keeps the rest.
const QUEUE: usize = 16;
const PIECE_BYTES: usize = 4096;

/// The standard input.
pub struct Input {
    pieces: mpsc::Receiver<Vec<u8>>,
    text: Text,
}

impl Input {
    /// Reads in a thread of its own, which ends with the program: a read cannot be cancelled.
    pub fn begin() -> Self {
        let (sender, pieces) = mpsc::channel(QUEUE);
        std::thread::spawn(move || {
            let mut buffer = [0; PIECE_BYTES];
            while let Ok(count @ 1..) = std::io::stdin().read(&mut buffer) {
                let piece = buffer.get(..count).unwrap_or_default().to_vec();
                if sender.blocking_send(piece).is_err() {
                    return;
                }
            }
        });
        Self { pieces, text: Text::default() }
    }

    /// The next text; never, after the end of the input.
    pub async fn next(&mut self) -> String {
        loop {
            let Some(piece) = self.pieces.recv().await else { return std::future::pending().await };
            let text = self.text.add(&piece);
            if !text.is_empty() {
                return text;
            }
        }
    }
}

/// Characters whose bytes arrive in pieces.
#[derive(Debug, Default)]
struct Text {
    rest: Vec<u8>,
}

impl Text {
    /// All that is complete. Bytes that no character can begin with are replaced.
    fn add(&mut self, piece: &[u8]) -> String {
        self.rest.extend_from_slice(piece);
        let bytes = std::mem::take(&mut self.rest);
        let mut text = String::new();
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            match chunk.invalid() {
                [] => {}
                invalid if bytes.ends_with(invalid) && is_beginning(invalid) => self.rest = invalid.to_vec(),
                _ => text.push('\u{fffd}'),
            }
        }
        text
    }
}

/// Whether more bytes can make this a character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_in_pieces_becomes_whole() {
        let mut text = Text::default();
        let [first, second, third] = "€".as_bytes() else { panic!("three bytes") };

        assert_eq!(text.add(&[b'a', *first]), "a");
        assert_eq!(text.add(&[*second]), "");
        assert_eq!(text.add(&[*third, b'b']), "€b");
        assert_eq!(text.add(&[0xff, b'c', *first, b'd']), "\u{fffd}c\u{fffd}d");
    }
}
