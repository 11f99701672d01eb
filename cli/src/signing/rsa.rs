//! An RSA key of OpenSSH in the form that cryptographic libraries read. Pure.
//!
//! OpenSSH keeps neither of the two exponents that make signing fast (d mod p-1, d mod q-1). They are computed here, without care for
//! how long that takes: it happens once, in the process of the person who owns the key.

/// The numbers of a key, big-endian, without zeros in front.
#[derive(Clone, Copy)]
pub struct Numbers<'a> {
    pub n: &'a [u8],
    pub e: &'a [u8],
    pub d: &'a [u8],
    pub p: &'a [u8],
    pub q: &'a [u8],
    /// Of q, modulo p.
    pub inverse: &'a [u8],
}

/// The longest numbers are those of keys of 16,384 bits, which nobody has; the time to divide grows with the square.
const MAX_BYTES: usize = 2048;

const DER_INTEGER: u8 = 2;
const DER_SEQUENCE: u8 = 0x30;

/// RSAPrivateKey of RFC 8017; none where the numbers are too long or no primes.
pub fn der(numbers: Numbers<'_>) -> Option<Vec<u8>> {
    let Numbers { n, e, d, p, q, inverse } = numbers;
    let (for_p, for_q) = (remainder(d, &less_one(p)?)?, remainder(d, &less_one(q)?)?);
    let mut body = Vec::new();
    for number in [&[0][..], n, e, d, p, q, &for_p, &for_q, inverse] {
        put(&mut body, DER_INTEGER, &positive(number))?;
    }
    let mut whole = Vec::new();
    put(&mut whole, DER_SEQUENCE, &body)?;
    Some(whole)
}

/// Without zeros in front, except one where the first bit would be a sign.
pub fn positive(number: &[u8]) -> Vec<u8> {
    let digits: &[u8] = number.iter().position(|byte| *byte != 0).and_then(|first| number.get(first..)).unwrap_or(&[]);
    match digits.first() {
        None => vec![0],
        Some(0x80..) => [&[0], digits].concat(),
        Some(_) => digits.to_vec(),
    }
}

/// A tag, a length and the contents.
fn put(to: &mut Vec<u8>, tag: u8, contents: &[u8]) -> Option<()> {
    to.push(tag);
    let length = u16::try_from(contents.len()).ok()?.to_be_bytes();
    match length {
        [0, short @ ..0x80] => to.push(short),
        [0, long] => to.extend_from_slice(&[0x81, long]),
        [high, low] => to.extend_from_slice(&[0x82, high, low]),
    }
    to.extend_from_slice(contents);
    Some(())
}

/// An odd number, less one.
fn less_one(number: &[u8]) -> Option<Vec<u8>> {
    let mut less = number.to_vec();
    let last = less.last_mut()?;
    if *last & 1 == 0 {
        return None;
    }
    *last &= 0xfe;
    Some(less)
}

/// What remains of a division, bit by bit.
fn remainder(number: &[u8], divisor: &[u8]) -> Option<Vec<u8>> {
    if number.len() > MAX_BYTES || divisor.len() > MAX_BYTES || divisor.iter().all(|byte| *byte == 0) {
        return None;
    }
    // One byte more than the divisor: twice a remainder may be longer than that.
    let divisor = [&[0], divisor].concat();
    let mut rest = vec![0; divisor.len()];
    for byte in number {
        for bit in (0..8).rev() {
            let mut carry = (byte >> bit) & 1;
            for digit in rest.iter_mut().rev() {
                let high = *digit >> 7;
                *digit = (*digit << 1) | carry;
                carry = high;
            }
            if rest >= divisor {
                subtract(&mut rest, &divisor);
            }
        }
    }
    Some(rest)
}

/// Of numbers of the same length, the first the greater.
fn subtract(from: &mut [u8], number: &[u8]) {
    let mut has_borrowed = false;
    for (digit, other) in from.iter_mut().zip(number).rev() {
        let (less, first) = digit.overflowing_sub(*other);
        let (less, second) = less.overflowing_sub(u8::from(has_borrowed));
        *digit = less;
        has_borrowed = first || second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_is_what_the_processor_says() {
        let mut state: u64 = 88_172_645_463_325_252;
        for _ in 0..300 {
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let number = (u128::from(next()) << 64) | u128::from(next());
            let divisor = u128::from(next()) >> (next() % 60);

            let rest = remainder(&number.to_be_bytes(), &divisor.to_be_bytes()).unwrap();

            let rest = rest.iter().fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
            assert_eq!(rest, number % divisor, "{number} {divisor}");
        }
        assert_eq!(remainder(&[1], &[0, 0]), None);
    }

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(positive(&[]), [0]);
        assert_eq!(positive(&[0, 0, 0x7f]), [0x7f]);
        assert_eq!(positive(&[0x80, 0]), [0, 0x80, 0]);
        assert_eq!(less_one(&[4]), None);
        assert_eq!(less_one(&[1, 1]), Some(vec![1, 0]));
    }

    #[test]
    fn lengths_are_written_as_der_has_them() {
        let written = |length: usize| {
            let mut to = Vec::new();
            put(&mut to, DER_INTEGER, &vec![1; length]).map(|()| to.iter().copied().take(to.len() - length).collect())
        };

        assert_eq!(written(5), Some(vec![2, 5]));
        assert_eq!(written(200), Some(vec![2, 0x81, 200]));
        assert_eq!(written(300), Some(vec![2, 0x82, 1, 44]));
        assert_eq!(written(70_000), None);
    }
}
