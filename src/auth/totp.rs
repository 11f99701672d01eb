//! Codes of authenticator apps: TOTP (RFC 6238) with SHA-1, six digits and steps of 30 s, which every app knows.

use aws_lc_rs::hmac;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use signalbox_protocol::Timestamp;
use subtle::ConstantTimeEq;

use crate::random;

/// As long as the hash (RFC 4226, 4).
pub const SECRET_BYTES: usize = 20;

const STEP_SECONDS: i64 = 30;

const DIGITS: usize = 6;

/// Steps before and after the present one that are accepted: clocks differ, and people type slowly (RFC 6238, 5.2).
const DRIFT: i64 = 1;

/// The alphabet of base 32 (RFC 4648, 6).
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The secret that the service shares with an app.
#[derive(Clone)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    pub fn generate() -> Result<Self, getrandom::Error> {
        random::bytes().map(Self)
    }

    /// None for bytes of another length.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The secret in base 32, for people who type it into their app.
    pub fn text(&self) -> String {
        base32(&self.0)
    }

    /// The address that apps read from a QR code.
    pub fn url(&self, issuer: &str, account: &str) -> String {
        let [issuer, account] = [issuer, account].map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string());
        let secret = self.text();
        format!("otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits=6&period=30")
    }

    /// The code of a step.
    fn code(&self, step: i64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let tag = tag.as_ref();
        // Dynamic truncation (RFC 4226, 5.3).
        let at = tag.last().map_or(0, |last| usize::from(last & 0xf));
        let word = tag.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        format!("{:0DIGITS$}", (word & 0x7fff_ffff) % 1_000_000)
    }

    /// The step whose code this is, if it is about now. Takes as long for every code.
    pub fn step_of(&self, code: &SecretString, now: Timestamp) -> Option<i64> {
        let digits = digits_of(code);
        let present = now.as_seconds().div_euclid(STEP_SECONDS);
        (present - DRIFT..=present + DRIFT).fold(None, |found, step| {
            let is_it: bool = self.code(step).as_bytes().ct_eq(&digits).into();
            if is_it { Some(step) } else { found }
        })
    }
}

/// What people typed, without the spaces that apps show.
fn digits_of(code: &SecretString) -> Vec<u8> {
    code.expose_secret().bytes().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// Base 32 without padding (RFC 4648, 6).
pub fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut buffer, mut bits) = (0_u32, 0);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(digit(buffer >> bits));
        }
        buffer &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(digit(buffer << (5 - bits)));
    }
    text
}

fn digit(value: u32) -> char {
    ALPHABET.get((value & 31) as usize).copied().map_or('A', char::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of RFC 6238, appendix B.
    fn secret() -> Secret {
        Secret(*b"12345678901234567890")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // The vectors of SHA-1 have eight digits; six are their end.
        let vectors = [
            (59, "94287082"),
            (1_111_111_109, "07081804"),
            (1_111_111_111, "14050471"),
            (1_234_567_890, "89005924"),
            (2_000_000_000, "69279037"),
            (20_000_000_000, "65353130"),
        ];

        for (seconds, code) in vectors {
            assert_eq!(secret().code(seconds / 30), &code[2..], "{seconds}");
            assert_eq!(secret().step_of(&code[2..].into(), at(seconds)), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_may_be_one_step_early_or_late() {
        let code: SecretString = secret().code(1_000).into();
        let step = |seconds| secret().step_of(&code, at(seconds));

        assert_eq!(step(1_000 * 30 - 31), None);
        assert_eq!(step(1_000 * 30 - 30), Some(1_000));
        assert_eq!(step(1_000 * 30 + 59), Some(1_000));
        assert_eq!(step(1_000 * 30 + 60), None);
    }

    #[test]
    fn only_the_six_digits_are_a_code() {
        let now = at(1_111_111_109);
        let step = |code: &str| secret().step_of(&code.into(), now);

        assert!(step("081804").is_some());
        assert!(step(" 081 804 ").is_some());
        for wrong in ["", "81804", "07081804", "081805", "０81804", "-81804"] {
            assert_eq!(step(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn base_32_is_that_of_rfc_4648() {
        let vectors =
            [("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB")];

        for (text, encoded) in vectors {
            assert_eq!(base32(text.as_bytes()), encoded);
        }
        assert_eq!(base32(b"foobar"), "MZXW6YTBOI");
    }

    #[test]
    fn the_address_for_apps_escapes_names() {
        assert_eq!(
            secret().url("Signalbox & co", "ada@example.com"),
            "otpauth://totp/Signalbox%20%26%20co:ada%40example%2Ecom?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&\
             issuer=Signalbox%20%26%20co&algorithm=SHA1&digits=6&period=30"
        );
    }
}
