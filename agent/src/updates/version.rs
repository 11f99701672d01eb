//! Versions of builds, and which of two is newer (semver.org, 2.0.0, without build metadata: two builds that differ in that alone
//! would be neither newer nor older).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The longest version.
const MAX_BYTES: usize = 64;

/// Such as `1.4.0` or `1.4.0-rc.1`. Ordered by age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    /// Empty for a release.
    before: Vec<Part>,
}

impl Version {
    /// The version of this program as it was built. One that could not be read would be newer than any other, so that no build takes
    /// the place of this one.
    pub fn of_program() -> Self {
        env!("CARGO_PKG_VERSION").parse().unwrap_or(Self { numbers: [u64::MAX; 3], before: Vec::new() })
    }
}

/// A part of what precedes a release. Numbers are older than words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

/// Why a text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its version is not of the form 1.2.3 or 1.2.3-rc.1")]
pub struct NoVersion;

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        if text.len() > MAX_BYTES {
            return Err(NoVersion);
        }
        let (numbers, before) = match text.split_once('-') {
            Some((numbers, before)) => (numbers, Some(before)),
            None => (text, None),
        };
        let numbers: Vec<u64> = numbers.split('.').map(number).collect::<Option<_>>().ok_or(NoVersion)?;
        let parts = before.map(|before| before.split('.').map(part).collect::<Option<Vec<Part>>>());
        let before = parts.unwrap_or_else(|| Some(Vec::new())).ok_or(NoVersion)?;
        Ok(Self { numbers: numbers.try_into().map_err(|_| NoVersion)?, before })
    }
}

/// One version has one spelling: no sign, no leading zero.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn part(text: &str) -> Option<Part> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(text).map(Part::Number);
    }
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_word.then(|| Part::Word(text.to_owned()))
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let is_release = (self.before.is_empty(), other.before.is_empty());
        self.numbers.cmp(&other.numbers).then_with(|| match is_release {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (true, true) | (false, false) => self.before.cmp(&other.before),
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (index, part) in self.before.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Part::Number(number) => write!(f, "{number}")?,
                Part::Word(word) => f.write_str(word)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_age() {
        let by_age = [
            "0.0.0-0",
            "0.9.10",
            "0.10.9",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta-2",
            "1.0.0",
            "1.0.1-rc.1",
            "1.0.1",
            "18446744073709551615.0.0",
        ];
        let versions: Vec<Version> = by_age.iter().map(|text| text.parse().unwrap()).collect();

        let texts: Vec<String> = versions.iter().map(Version::to_string).collect();

        assert_eq!(texts, by_age);
        for (index, version) in versions.iter().enumerate() {
            for (other_index, other) in versions.iter().enumerate() {
                assert_eq!(version.cmp(other), index.cmp(&other_index), "{version} {other}");
            }
        }
    }

    #[test]
    fn the_version_of_this_program_can_be_read() {
        assert_eq!(env!("CARGO_PKG_VERSION").parse(), Ok(Version::of_program()));
        assert_eq!(Version::of_program().to_string(), env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        let long = format!("1.0.0-{}", "a".repeat(64));
        let texts = [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "1.2.x",
            "01.2.3",
            "1.2.+3",
            "1.2.-3",
            "1.2.3-",
            "1.2.3-a..b",
            "1.2.3-01",
            "1.2.3+build",
            "1.2.3 ",
            " 1.2.3",
            "1.2.3-a/b",
            "1.2.3-é",
            "18446744073709551616.0.0",
            &long,
        ];

        for text in texts {
            assert_eq!(text.parse::<Version>(), Err(NoVersion), "{text}");
        }
    }
}
