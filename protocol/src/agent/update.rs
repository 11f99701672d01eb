//! New builds of the agent, which it takes only with a signature by a key that its owner pinned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The method that offers a release. The agent answers as soon as it has checked the signature; it then downloads its build,
/// tries it, and connects with it.
pub const OFFER_UPDATE: &str = "agent.update";

/// The namespace of a release's signature.
pub const RELEASE_NAMESPACE: &str = "signalbox-agent-release-v1";

/// The version of the format of releases.
pub const RELEASE_FORMAT: u32 = 1;

/// The longest description of a release, in bytes.
pub const MAX_RELEASE_BYTES: usize = 16 * 1024;

/// The longest signature of a release, in bytes.
pub const MAX_RELEASE_SIGNATURE_BYTES: usize = 8 * 1024;

/// Offers a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateOffer {
    /// The signed bytes, in base64: a [`Release`] in JSON. They are passed on as they are and never written again.
    pub release: String,
    /// The signature over them by SSH, armoured, in the namespace [`RELEASE_NAMESPACE`].
    pub signature: String,
}

/// The answer to an offer that the agent takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateTaken {
    /// The version that it is going to try.
    pub version: String,
}

/// The builds of one version. What this version of the format does not know is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The version of the format: [`RELEASE_FORMAT`].
    pub v: u32,
    /// The version of the builds, such as `1.4.0`.
    pub version: String,
    /// The builds, by the name of their file below `/install`, such as `signalbox-agent-linux-x86_64`.
    pub programs: BTreeMap<String, ReleasedProgram>,
}

/// One build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedProgram {
    /// The length of the file.
    pub bytes: u64,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

impl ReleasedProgram {
    /// Whether its checksum can be one.
    pub fn has_checksum(&self) -> bool {
        self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// The architecture of this program in the names of agents' programs, as `uname -m` and `install.sh` have it.
pub fn program_arch() -> &'static str {
    match std::env::consts::ARCH {
        "arm" => "armv7",
        "x86" => "i686",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
        arch => arch,
    }
}

/// A build that did not work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FailedUpdate {
    /// Its version.
    pub version: String,
    /// Why, for people.
    pub reason: String,
}
