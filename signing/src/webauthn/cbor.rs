//! The part of CBOR (RFC 8949) that authenticators use: definite lengths, no floating point numbers, no tags.

/// Deeper values are refused; an attestation nests four levels.
const MAX_DEPTH: usize = 8;

/// Longer lists and maps are refused, so that reading takes no longer than the input is long.
const MAX_ITEMS: usize = 64;

/// A value that borrows its bytes from the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    Array(Vec<Value<'a>>),
    Map(Vec<(Value<'a>, Value<'a>)>),
    /// True, false, null or undefined.
    Simple(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no CBOR of an authenticator")]
pub struct NotCbor;

impl<'a> Value<'a> {
    /// The bytes in a map under this text.
    pub fn bytes_of(&self, name: &str) -> Option<&'a [u8]> {
        self.find(&Value::Text(name)).and_then(Value::as_bytes)
    }

    /// The integer in a map under this integer.
    pub fn int_at(&self, label: i64) -> Option<i64> {
        match self.find(&Value::Int(label))? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The bytes in a map under this integer.
    pub fn bytes_at(&self, label: i64) -> Option<&'a [u8]> {
        self.find(&Value::Int(label)).and_then(Value::as_bytes)
    }

    fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn find(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// Reads one value. Returns what follows it, too.
pub fn read(input: &[u8]) -> Result<(Value<'_>, &[u8]), NotCbor> {
    read_at(input, 0)
}

fn read_at(input: &[u8], depth: usize) -> Result<(Value<'_>, &[u8]), NotCbor> {
    if depth > MAX_DEPTH {
        return Err(NotCbor);
    }
    let (first, rest) = input.split_first().ok_or(NotCbor)?;
    let (argument, rest) = argument(first & 0x1f, rest)?;
    let length = usize::try_from(argument).map_err(|_| NotCbor);
    let count = length.and_then(|length| if length > MAX_ITEMS { Err(NotCbor) } else { Ok(length) });
    match first >> 5 {
        0 => Ok((Value::Int(i64::try_from(argument).map_err(|_| NotCbor)?), rest)),
        1 => Ok((Value::Int(-1 - i64::try_from(argument).map_err(|_| NotCbor)?), rest)),
        2 => rest.split_at_checked(length?).map(|(bytes, rest)| (Value::Bytes(bytes), rest)).ok_or(NotCbor),
        3 => {
            let (bytes, rest) = rest.split_at_checked(length?).ok_or(NotCbor)?;
            Ok((Value::Text(std::str::from_utf8(bytes).map_err(|_| NotCbor)?), rest))
        }
        4 => {
            let (mut items, mut rest) = (Vec::new(), rest);
            for _ in 0..count? {
                let (item, after) = read_at(rest, depth + 1)?;
                items.push(item);
                rest = after;
            }
            Ok((Value::Array(items), rest))
        }
        5 => {
            let (mut pairs, mut rest) = (Vec::new(), rest);
            for _ in 0..count? {
                let (key, after) = read_at(rest, depth + 1)?;
                let (value, after) = read_at(after, depth + 1)?;
                // Two values for one key could be read differently by two readers.
                if pairs.iter().any(|(known, _)| *known == key) {
                    return Err(NotCbor);
                }
                pairs.push((key, value));
                rest = after;
            }
            Ok((Value::Map(pairs), rest))
        }
        7 if (20..=23).contains(&argument) => Ok((Value::Simple(u8::try_from(argument).map_err(|_| NotCbor)?), rest)),
        _ => Err(NotCbor),
    }
}

/// The argument of a first byte, which has it or says how many bytes of it follow.
fn argument(short: u8, input: &[u8]) -> Result<(u64, &[u8]), NotCbor> {
    let count = match short {
        0..=23 => return Ok((short.into(), input)),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return Err(NotCbor),
    };
    let (bytes, rest) = input.split_at_checked(count).ok_or(NotCbor)?;
    Ok((bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_rfc_8949_are_read() {
        let whole = |bytes: &'static [u8]| read(bytes).map(|(value, rest)| (value, rest.len()));

        assert_eq!(whole(&[0x17]), Ok((Value::Int(23), 0)));
        assert_eq!(whole(&[0x19, 0x03, 0xe8]), Ok((Value::Int(1_000), 0)));
        assert_eq!(whole(&[0x39, 0x03, 0xe7, 0xff]), Ok((Value::Int(-1_000), 1)));
        assert_eq!(whole(&[0x44, 1, 2, 3, 4]), Ok((Value::Bytes(&[1, 2, 3, 4]), 0)));
        assert_eq!(whole(&[0x62, 0xc3, 0xbc]), Ok((Value::Text("ü"), 0)));
        assert_eq!(whole(&[0x82, 0x01, 0xf5]), Ok((Value::Array(vec![Value::Int(1), Value::Simple(21)]), 0)));
        let (map, _) = read(&[0xa2, 0x61, b'a', 0x41, 7, 0x20, 0x02]).unwrap();
        assert_eq!((map.bytes_of("a"), map.int_at(-1), map.bytes_at(5)), (Some([7].as_slice()), Some(2), None));
    }

    #[test]
    fn what_no_authenticator_sends_is_refused() {
        let endless = [0x5f, 0x41, 1, 0xff];
        let deep = [0x81; 100];
        let cut = [0x44, 1, 2];
        let long = [[0x98, 65].as_slice(), &[1; 65]].concat();
        let huge = [0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let twice = [0xa2, 0x01, 0x01, 0x01, 0x02];
        let tagged = [0xc0, 0x61, b'a'];
        let float = [0xf9, 0x3c, 0x00];

        for bytes in [&endless[..], &deep, &cut, &long, &huge, &twice, &tagged, &float, &[]] {
            assert_eq!(read(bytes), Err(NotCbor), "{bytes:x?}");
        }
    }
}
