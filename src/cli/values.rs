//! What the values of flags may be. Each refusal says what is wanted, with an example.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;

use secrecy::SecretString;

use super::VerifyArgs;
use crate::address::{is_address, is_email, is_origin};
use crate::audit::chain::{Expectation, HASH_LENGTH, parse_hex};
use crate::observe;

/// Takes a whole number from `least` to `most`.
pub fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("a whole number from {least} to {most} is needed"))
    }
}

/// How long something may be kept: a century at most.
pub fn days() -> impl Fn(&str) -> Result<u32, String> + Clone {
    whole(1, 36_500)
}

/// Takes anything: a parser that refused would print the value, password and all. The value is checked when it is used.
pub fn secret(text: &str) -> Result<SecretString, Infallible> {
    Ok(text.into())
}

/// Takes an address and a port to listen on.
pub fn listen(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| {
        "an IP address and a port are needed, such as 127.0.0.1:8000, [::1]:8000, or 0.0.0.0:8000 for every address"
    })
}

/// Takes the first parts of a NATS subject.
pub fn subject(text: &str) -> Result<String, &'static str> {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_sound = text.len() <= 64 && text.split('.').all(is_part);
    is_sound.then(|| text.to_owned()).ok_or("a prefix has letters, digits, - and _, with dots between its parts")
}

/// Takes the address under which people reach the service.
pub fn public_url(text: &str) -> Result<String, &'static str> {
    let url = text.trim_end_matches('/');
    if !is_address(url) {
        return Err("an address with its scheme is needed, such as https://signalbox.example.com");
    }
    // Pages, sockets and cookies are at the root of a host.
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let is_root = !rest.contains('/');
    is_root.then(|| url.to_owned()).ok_or("an address with no path is needed, such as https://signalbox.example.com")
}

/// Takes an e-mail address.
pub fn email(text: &str) -> Result<String, &'static str> {
    is_email(text).then(|| text.to_owned()).ok_or("an e-mail address is needed, such as ada@example.com")
}

/// Takes the origin of pages, as browsers name it.
pub fn origin(text: &str) -> Result<String, &'static str> {
    let origin = text.trim().trim_end_matches('/');
    is_origin(origin)
        .then(|| origin.to_owned())
        .ok_or("an origin has a scheme, a host and perhaps a port, but no path, such as https://dashboard.example.com")
}

/// Takes a directory that is there.
pub fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(path),
        Ok(_) => Err("this is not a directory".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Takes levels, and targets with levels. A lone word that is no level would be taken for a target: nothing else would be
/// logged then, not even errors.
pub fn log_filter(text: &str) -> Result<String, String> {
    const WANTED: &str = "error, warn, info, debug, trace or off is needed, or a filter such as info,signalbox=debug";
    let is_sound = |directive: &str| directive.contains(['=', '[', ']', '{', '}']) || observe::is_level(directive);
    if !text.split(',').all(is_sound) {
        return Err(WANTED.to_owned());
    }
    observe::log_filter(text).map(|_| text.to_owned()).map_err(|error| format!("{error}; {WANTED}"))
}

impl VerifyArgs {
    /// The entry that must be in the log.
    pub fn expectation(&self) -> Option<Expectation> {
        Some(Expectation { seq: self.expect_seq?, hash: self.expect_hash? })
    }
}

/// Takes the hash of an entry of the audit log.
pub fn hash(text: &str) -> Result<[u8; HASH_LENGTH], &'static str> {
    parse_hex(text).ok_or("a hash has 64 hexadecimal digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_says_what_is_logged_of_everything_else() {
        for text in
            ["info", "WARN", "off", "info,signalbox=debug", "warn,signalbox::http=trace", "info,a[b{c=1}]=debug"]
        {
            assert_eq!(log_filter(text).as_deref(), Ok(text));
        }
        for text in ["", "foo", "wran", "info,wran", "info,", "signalbox=loud", "info,signalbox=debug,verbose"] {
            assert!(log_filter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_filter_does_not_name_is_logged_from_warnings_up() {
        let told = |text: &str| {
            let filter = observe::log_filter(text).unwrap().to_string();
            filter.split(',').filter(|part| !part.contains('=')).map(str::to_owned).collect::<Vec<_>>()
        };

        assert_eq!(told("nosuch=debug"), ["warn"]);
        assert_eq!(told("signalbx=trace,h2=debug"), ["warn"]);
        assert_eq!(told("error,signalbox=debug"), ["error"]);
        assert_eq!(told("off"), ["off"]);
    }

    #[test]
    fn a_number_is_whole_and_within_its_bounds() {
        let port = whole::<u16>(1, 1_024);

        assert_eq!((port("1"), port("1024")), (Ok(1), Ok(1_024)));
        for text in ["", "0", "1025", "-1", "x", "1.5", "1e3", "99999999999999999999999"] {
            assert_eq!(port(text), Err("a whole number from 1 to 1024 is needed".to_owned()), "{text}");
        }
    }

    #[test]
    fn a_public_address_is_complete_and_loses_its_last_slash() {
        assert_eq!(public_url("https://box.example.com/").as_deref(), Ok("https://box.example.com"));
        assert_eq!(public_url("http://192.0.2.1:8000").as_deref(), Ok("http://192.0.2.1:8000"));
        for text in [
            "foo",
            "",
            "//",
            "https://",
            "https:///x",
            "ftp://a",
            "https://a?b",
            "https://me@a",
            "a.example.com",
            "https://a/b",
        ] {
            assert!(public_url(text).is_err(), "{text}");
        }
    }
}
