//! Numbers and texts of variable length, written and read again.

use super::BlockError;

#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Small numbers of either sign in few bytes.
    pub fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Reads what a [`Writer`] wrote, and never beyond its end.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn number(&mut self) -> Result<u64, BlockError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BlockError::Corrupt("a number is too long"))
    }

    pub fn signed(&mut self) -> Result<i64, BlockError> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A count of things of which each takes some memory.
    pub fn count(&mut self, most: usize) -> Result<usize, BlockError> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count > most { Err(BlockError::Corrupt("there is too much of something")) } else { Ok(count) }
    }

    pub fn text(&mut self) -> Result<String, BlockError> {
        let length = self.count(self.0.len())?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| BlockError::Corrupt("a text is none"))
    }

    pub fn byte(&mut self) -> Result<u8, BlockError> {
        let (byte, rest) = self.0.split_first().ok_or(BlockError::Corrupt("it ends too early"))?;
        self.0 = rest;
        Ok(*byte)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], BlockError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(BlockError::Corrupt("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }
}
