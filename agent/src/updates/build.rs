//! What is offered, and the decision whether it is taken. It is pure: no file, no clock, no network.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{
    MAX_RELEASE_BYTES, MAX_RELEASE_SIGNATURE_BYTES, RELEASE_FORMAT, RELEASE_NAMESPACE, Release, RequestError,
    UpdateOffer, program_arch,
};
use signalbox_signing::Signers;
use signalbox_signing::ssh::SshSignature;

use super::record::FailedBuild;
use super::version::Version;

/// The longest build: five times what the agent is today.
const MAX_PROGRAM_BYTES: u64 = 64 << 20;

/// A build for this machine that a pinned key has signed, as part of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    pub version: Version,
    /// Of the program, in lower case.
    pub sha256: String,
    /// The program's length.
    pub bytes: u64,
    /// What proves it: the agent verifies it again at each start.
    pub offer: UpdateOffer,
}

/// Why a build is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this agent takes no builds from the service: see `updates` in its policy")]
    UpdatesOff,
    #[error("the release is not signed by a key in this agent's release_signers")]
    UnknownSigner,
    #[error("the release cannot be read: {0}")]
    Malformed(String),
    #[error("{offered} is not newer than {running}, which runs")]
    NotNewer { offered: Version, running: Version },
    #[error("the release has no {0}")]
    NoBuild(String),
    #[error("{version} was tried here and did not work: {reason}")]
    FailedBefore { version: Version, reason: String },
    #[error("the agent is busy with the build of another release")]
    Busy,
    #[error("the agent could not fetch or try this build just now, and waits before it does so again")]
    Paused,
}

impl Refusal {
    /// The reason for programs.
    fn reason(&self) -> &'static str {
        match self {
            Self::UpdatesOff => "updates_off",
            Self::UnknownSigner => "unknown_signer",
            Self::Malformed(_) => "malformed",
            Self::NotNewer { .. } => "not_newer",
            Self::NoBuild(_) => "no_build",
            Self::FailedBefore { .. } => "failed_before",
            Self::Busy | Self::Paused => "busy",
        }
    }
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        let error = Self::new("agent_refused", &refusal.to_string());
        Self { reason: Some(refusal.reason().to_owned()), ..error }
    }
}

/// The file of this machine's build below the service's `/install`, with the architecture as install.sh names it.
pub fn program() -> String {
    format!("signalbox-agent-linux-{}", program_arch())
}

impl Build {
    /// Whether a pinned key has signed the release, and what it has for this machine. Nothing of it is read before that is known.
    pub fn verify(offer: UpdateOffer, signers: &Signers, now: Timestamp) -> Result<Self, Refusal> {
        let malformed = |detail: &str| Refusal::Malformed(detail.to_owned());
        if offer.signature.len() > MAX_RELEASE_SIGNATURE_BYTES || offer.release.len() / 4 * 3 > MAX_RELEASE_BYTES + 3 {
            return Err(malformed("it is too long"));
        }
        let bytes = BASE64_STANDARD.decode(&offer.release).map_err(|_| malformed("it is not base64"))?;
        if bytes.len() > MAX_RELEASE_BYTES {
            return Err(malformed("it is too long"));
        }
        let signature = SshSignature::parse(&offer.signature).map_err(|_| Refusal::UnknownSigner)?;
        if signers.author_of(&signature, RELEASE_NAMESPACE, &bytes, now).is_none() {
            return Err(Refusal::UnknownSigner);
        }
        let release: Release = serde_json::from_slice(&bytes).map_err(|error| malformed(&error.to_string()))?;
        if release.v != RELEASE_FORMAT {
            return Err(malformed(&format!("it has the format {}, and this agent reads {RELEASE_FORMAT}", release.v)));
        }
        let version: Version = release.version.parse().map_err(|error| malformed(&format!("{error}")))?;
        let name = program();
        let Some(program) = release.programs.get(&name) else { return Err(Refusal::NoBuild(name)) };
        if !program.has_checksum() {
            return Err(malformed("its sha256 is not of 64 hexadecimal digits"));
        }
        if !(1..=MAX_PROGRAM_BYTES).contains(&program.bytes) {
            return Err(malformed(&format!("its program must have 1 to {MAX_PROGRAM_BYTES} bytes")));
        }
        Ok(Self { version, sha256: program.sha256.to_ascii_lowercase(), bytes: program.bytes, offer })
    }

    /// Whether it may take the place of the build that runs.
    pub fn expect_progress(&self, running: &Version, failed: &[FailedBuild]) -> Result<(), Refusal> {
        if self.version <= *running {
            return Err(Refusal::NotNewer { offered: self.version.clone(), running: running.clone() });
        }
        match failed.iter().find(|failed| failed.sha256 == self.sha256 && failed.is_given_up()) {
            Some(failed) => Err(Refusal::FailedBefore { version: self.version.clone(), reason: failed.reason.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::{Value, json};
    use signalbox_signing::ssh::{put_string, to_sign};

    use super::*;
    use crate::updates::record::MAX_TRIES;

    struct Key(Ed25519KeyPair);

    impl Key {
        fn new() -> Self {
            Self(Ed25519KeyPair::generate().unwrap())
        }

        fn public(&self) -> Vec<u8> {
            strings(&[b"ssh-ed25519", self.0.public_key().as_ref()])
        }

        fn line(&self) -> String {
            format!("ssh-ed25519 {}", BASE64_STANDARD.encode(self.public()))
        }

        fn sign(&self, namespace: &str, release: &[u8]) -> UpdateOffer {
            let signature = self.0.sign(&to_sign(namespace, release).unwrap());
            let signature = strings(&[b"ssh-ed25519", signature.as_ref()]);
            let signature = SshSignature::new(self.public(), namespace, signature).to_text().unwrap();
            UpdateOffer { release: BASE64_STANDARD.encode(release), signature }
        }
    }

    fn strings(parts: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        parts.iter().for_each(|part| put_string(&mut bytes, part).unwrap());
        bytes
    }

    fn release() -> Value {
        json!({
            "v": 1,
            "version": "1.4.0",
            "programs": {
                program(): {"bytes": 1_000, "sha256": "AB".repeat(32)},
                "signalbox-agent-linux-other": {"bytes": 1_000, "sha256": "cd".repeat(32)},
            },
            "later": "is ignored",
        })
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-27T12:00:00Z").unwrap()
    }

    fn signers(lines: &str) -> Signers {
        Signers::parse_for(lines, RELEASE_NAMESPACE).unwrap()
    }

    fn verify(key: &Key, release: &[u8]) -> Result<Build, Refusal> {
        let offer = key.sign(RELEASE_NAMESPACE, release);
        Build::verify(offer, &signers(&format!("ada {}\n", key.line())), now())
    }

    #[test]
    fn a_release_with_a_pinned_signature_has_a_build_for_this_machine() {
        let build = verify(&Key::new(), release().to_string().as_bytes()).unwrap();

        assert_eq!((build.version.to_string().as_str(), build.bytes), ("1.4.0", 1_000));
        assert_eq!(build.sha256, "ab".repeat(32));
    }

    #[test]
    fn a_release_without_a_pinned_signature_is_not_read() {
        let (ada, eve) = (Key::new(), Key::new());
        let text = release().to_string();
        let refused = |offer: UpdateOffer, lines: &str| Build::verify(offer, &signers(lines), now()).unwrap_err();
        let genuine = || ada.sign(RELEASE_NAMESPACE, text.as_bytes());
        let of_ada = |options: &str| format!("ada {options}{}\n", ada.line());

        assert!(Build::verify(genuine(), &signers(&of_ada("")), now()).is_ok());
        let unsigned = UpdateOffer { signature: String::new(), ..genuine() };
        let altered = UpdateOffer { release: BASE64_STANDARD.encode(format!("{text} ")), ..genuine() };
        for (what, offer, lines) in [
            ("unsigned", unsigned, of_ada("")),
            ("altered", altered, of_ada("")),
            ("by somebody else", eve.sign(RELEASE_NAMESPACE, text.as_bytes()), of_ada("")),
            ("a command", ada.sign("signalbox-command-v1", text.as_bytes()), of_ada("")),
            ("a key for commands", genuine(), of_ada("namespaces=\"signalbox-command-v1\" ")),
            ("an expired key", genuine(), of_ada("valid-before=\"20261127Z\" ")),
            ("a key of the future", genuine(), of_ada("valid-after=\"20261128Z\" ")),
            ("nobody", genuine(), String::new()),
        ] {
            assert_eq!(refused(offer, &lines), Refusal::UnknownSigner, "{what}");
        }
    }

    #[test]
    fn a_signed_release_that_means_nothing_is_refused() {
        let key = Key::new();
        let with = |change: &dyn Fn(&mut Value)| {
            let mut release = release();
            change(&mut release);
            release.to_string()
        };
        let of_program = |field: &'static str, value: Value| {
            with(&move |release: &mut Value| release["programs"][program()][field] = value.clone())
        };

        for (text, expected) in [
            ("{".to_owned(), "EOF"),
            ("[1]".to_owned(), "invalid"),
            (with(&|release| release["v"] = json!(2)), "it has the format 2"),
            (with(&|release| release["version"] = json!("1.4")), "its version is not"),
            (of_program("sha256", json!("ab")), "its sha256"),
            (of_program("sha256", json!("../../../etc/passwd".repeat(4).get(..64))), "its sha256"),
            (of_program("bytes", json!(0)), "must have 1 to"),
            (of_program("bytes", json!((64 << 20) + 1)), "must have 1 to"),
            (of_program("bytes", json!(-1)), "invalid value"),
            (with(&|release| release["notes"] = json!("x".repeat(MAX_RELEASE_BYTES))), "it is too long"),
        ] {
            match verify(&key, text.as_bytes()) {
                Err(Refusal::Malformed(detail)) => assert!(detail.contains(expected), "{detail}"),
                other => panic!("{expected}: {other:?}"),
            }
        }
        let other = with(&|release| _ = release["programs"].as_object_mut().unwrap().remove(&program()));
        assert_eq!(verify(&key, other.as_bytes()), Err(Refusal::NoBuild(program())));
        let offer = UpdateOffer { release: "{}".to_owned(), signature: "x".repeat(MAX_RELEASE_SIGNATURE_BYTES + 1) };
        assert!(matches!(Build::verify(offer, &Signers::default(), now()), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn only_a_newer_build_that_did_not_fail_here_is_progress() {
        let build = verify(&Key::new(), release().to_string().as_bytes()).unwrap();
        let progress = |running: &str, failed: &[FailedBuild]| {
            build.expect_progress(&running.parse().unwrap(), failed).map_err(|refusal| refusal.reason())
        };
        let tried = |sha256: String, tries: u32| {
            [FailedBuild { version: "1.4.0".to_owned(), sha256, reason: "it hangs".to_owned(), tries }]
        };
        let failed = |sha256: String| tried(sha256, MAX_TRIES);

        for running in ["1.3.9", "0.99.0", "1.4.0-rc.9"] {
            assert_eq!(progress(running, &[]), Ok(()), "{running}");
        }
        for running in ["1.4.0", "1.4.1-rc.1", "2.0.0"] {
            assert_eq!(progress(running, &[]), Err("not_newer"), "{running}");
        }
        assert_eq!(progress("1.3.0", &failed("ab".repeat(32))), Err("failed_before"));
        assert_eq!(progress("1.3.0", &failed("cd".repeat(32))), Ok(()), "another build of the same version");
        assert_eq!(progress("1.3.0", &tried("ab".repeat(32), 2)), Ok(()), "it may be tried again");
    }
}
