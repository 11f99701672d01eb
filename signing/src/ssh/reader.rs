//! The encoding of RFC 4251: big-endian numbers and strings with a length.

use super::SshError;

/// Reads from the front of some bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn expect(&mut self, bytes: &[u8]) -> Result<(), SshError> {
        self.0 = self.0.strip_prefix(bytes).ok_or(SshError::Malformed)?;
        Ok(())
    }

    pub fn byte(&mut self) -> Result<u8, SshError> {
        let (first, rest) = self.0.split_first().ok_or(SshError::Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn number(&mut self) -> Result<u32, SshError> {
        let (bytes, rest) = self.0.split_first_chunk::<4>().ok_or(SshError::Malformed)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    pub fn string(&mut self) -> Result<&'a [u8], SshError> {
        let length = usize::try_from(self.number()?).map_err(|_| SshError::Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(SshError::Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A positive integer in its one encoding, without the zero that says that it is not negative.
    pub fn integer(&mut self) -> Result<&'a [u8], SshError> {
        match self.string()? {
            [0, rest @ ..] if rest.first().is_some_and(|first| *first >= 0x80) => Ok(rest),
            digits if digits.first().is_some_and(|first| (1..0x80).contains(first)) => Ok(digits),
            _ => Err(SshError::Malformed),
        }
    }

    /// Nothing may follow.
    pub fn end(self) -> Result<(), SshError> {
        if self.0.is_empty() { Ok(()) } else { Err(SshError::Malformed) }
    }
}

/// Writes a string with its length.
pub fn put_string(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), SshError> {
    let length = u32::try_from(bytes.len()).map_err(|_| SshError::Malformed)?;
    to.extend_from_slice(&length.to_be_bytes());
    to.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_one_encoding() {
        let read = |bytes: &[u8]| {
            let mut text = Vec::new();
            put_string(&mut text, bytes).unwrap();
            Reader::new(&text).integer().map(<[u8]>::to_vec)
        };

        assert_eq!(read(&[1]), Ok(vec![1]));
        assert_eq!(read(&[0, 0x80]), Ok(vec![0x80]));
        for other in [&[][..], &[0], &[0, 1], &[0, 0, 0x80], &[0x80]] {
            assert_eq!(read(other), Err(SshError::Malformed), "{other:?}");
        }
    }
}
