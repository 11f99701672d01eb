//! Versions of builds, and which of two is newer.

use std::fmt;
use std::str::FromStr;

/// The longest version, in bytes.
const MAX_BYTES: usize = 64;

/// Such as `1.4.0` or `1.4.0-rc.1`, ordered by age. It has no build metadata: two builds that differ in that alone would be neither
/// newer nor older. Source: <https://semver.org>, 2.0.0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(semver::Version);

/// Why a text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its version is not of the form 1.2.3 or 1.2.3-rc.1")]
pub struct NoVersion;

impl Version {
    /// No version is newer.
    pub fn newest() -> Self {
        Self(semver::Version::new(u64::MAX, u64::MAX, u64::MAX))
    }
}

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let version = semver::Version::parse(text).map_err(|_| NoVersion)?;
        let is_known = text.len() <= MAX_BYTES && version.build.is_empty();
        is_known.then_some(Self(version)).ok_or(NoVersion)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
