//! The signed release beside the programs, as this service passes it on.
//!
//! The service has no key for releases and does not judge signatures: each agent does, with the keys that its owner pinned. What is
//! checked here is only what would make an offer pointless, so that people learn of it before their agents do.

use std::fs::File;
use std::io::{self, Read};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use signalbox_protocol::agent::{
    MAX_RELEASE_BYTES, MAX_RELEASE_SIGNATURE_BYTES, RELEASE_FORMAT, Release, ReleasedProgram, Version,
};

use super::{InstallError, Known, Platform, Programs, Shelf, Stamp, open};

/// The file with the signed bytes.
const RELEASE: &str = "agent-release.json";

/// The file with the signature over them.
const SIGNATURE: &str = "agent-release.json.sig";

/// A release that this service can offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedRelease {
    pub version: String,
    /// Its programs and their lengths, by name.
    pub programs: Vec<(String, u64)>,
    /// The programs that are not here with the length and checksum that the release names.
    pub missing: Vec<String>,
    /// The signed bytes, in base64.
    pub release: String,
    /// The signature over them, armoured.
    pub signature: String,
}

/// Why there is no release although there is a file.
#[derive(Debug, thiserror::Error)]
enum ReleaseFault {
    #[error("there is no {SIGNATURE} beside it")]
    NoSignature,
    #[error("it is longer than {MAX_RELEASE_BYTES} bytes")]
    TooLong,
    #[error("{SIGNATURE} is longer than {MAX_RELEASE_SIGNATURE_BYTES} bytes")]
    LongSignature,
    #[error("{SIGNATURE} is no text")]
    BadSignature,
    #[error("it is not understood: {0}")]
    Malformed(serde_json::Error),
    #[error("it has the format {0}, and this service knows the format {RELEASE_FORMAT}")]
    Format(u32),
    #[error("it needs a version such as 1.2.3 or 1.2.3-rc.1")]
    Version,
    #[error("it names no program")]
    Empty,
    #[error("it names {0:?}, which is no name of an agent's program, or has no SHA-256 for it")]
    Program(String),
}

impl Programs {
    /// The release of the directory, if there is one that can be offered. Reads its files each time: they are short, and may be
    /// replaced at any time. The programs' checksums are computed once for each of their stamps.
    pub async fn release(&self) -> Result<Option<OfferedRelease>, InstallError> {
        self.look(|shelf, known| shelf.release(known)).await
    }
}

impl Shelf {
    fn release(&self, known: &mut Known) -> io::Result<Option<OfferedRelease>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let path = directory.join(RELEASE);
        let Some(file) = open(&path, known)? else { return Ok(None) };
        let stamp = Stamp::of(&file)?;
        let bytes = bounded(file, MAX_RELEASE_BYTES)?;
        let signature = match open(&directory.join(SIGNATURE), known)? {
            Some(file) => Some(bounded(file, MAX_RELEASE_SIGNATURE_BYTES)?),
            None => None,
        };
        match parse(&bytes, signature) {
            Ok((release, signature)) => self.compared(release, &bytes, signature, known).map(Some),
            Err(fault) => {
                // Logged once for each file: clients may ask as often as they like.
                if known.faulty_release.replace(stamp) != Some(stamp) {
                    tracing::warn!(path = %path.display(), %fault, "the agents' release cannot be offered");
                }
                Ok(None)
            }
        }
    }

    /// The release, with the programs that are not here as it names them.
    fn compared(
        &self,
        release: Release,
        bytes: &[u8],
        signature: String,
        known: &mut Known,
    ) -> io::Result<OfferedRelease> {
        let mut missing = Vec::new();
        for (name, released) in &release.programs {
            let found = match Platform::of_program(name) {
                Some(platform) => self.open(platform, known)?,
                None => None,
            };
            let is_same = found.is_some_and(|opened| is_same(&opened.program, released));
            if !is_same {
                missing.push(name.clone());
            }
        }
        let programs = release.programs.into_iter().map(|(name, program)| (name, program.bytes)).collect();
        let release_text = BASE64_STANDARD.encode(bytes);
        Ok(OfferedRelease { version: release.version, programs, missing, release: release_text, signature })
    }
}

fn is_same(program: &super::Program, released: &ReleasedProgram) -> bool {
    program.bytes == released.bytes && program.sha256.eq_ignore_ascii_case(&released.sha256)
}

/// A file's bytes; one more than `most` if it is longer.
fn bounded(file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(bytes: &[u8], signature: Option<Vec<u8>>) -> Result<(Release, String), ReleaseFault> {
    let signature = signature.ok_or(ReleaseFault::NoSignature)?;
    if bytes.len() > MAX_RELEASE_BYTES {
        return Err(ReleaseFault::TooLong);
    }
    if signature.len() > MAX_RELEASE_SIGNATURE_BYTES {
        return Err(ReleaseFault::LongSignature);
    }
    let signature = String::from_utf8(signature).map_err(|_| ReleaseFault::BadSignature)?;
    if signature.contains('\0') {
        return Err(ReleaseFault::BadSignature);
    }
    let release: Release = serde_json::from_slice(bytes).map_err(ReleaseFault::Malformed)?;
    if release.v != RELEASE_FORMAT {
        return Err(ReleaseFault::Format(release.v));
    }
    if release.version.parse::<Version>().is_err() {
        return Err(ReleaseFault::Version);
    }
    if release.programs.is_empty() {
        return Err(ReleaseFault::Empty);
    }
    let is_sound =
        |(name, program): &(&String, &ReleasedProgram)| Platform::of_program(name).is_some() && program.has_checksum();
    if let Some((name, _)) = release.programs.iter().find(|named| !is_sound(named)) {
        return Err(ReleaseFault::Program(name.clone()));
    }
    Ok((release, signature))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::super::Limits;
    use super::*;

    const PROGRAM: &str = "signalbox-agent-linux-riscv64";

    /// `printf one | sha256sum`.
    const SUM_OF_ONE: &str = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";

    fn described() -> Value {
        json!({ "v": 1, "version": "1.4.0", "programs": { PROGRAM: { "bytes": 3, "sha256": SUM_OF_ONE } }, "later": true })
    }

    fn write(directory: &TempDir, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(directory.path().join(name), content).unwrap();
    }

    /// A directory with a release, and what offers it.
    fn scene(release: impl AsRef<[u8]>) -> (TempDir, Programs) {
        let directory = tempfile::tempdir().unwrap();
        write(&directory, RELEASE, release);
        write(&directory, SIGNATURE, "signed");
        write(&directory, PROGRAM, "one");
        let programs = Programs::new(Some(directory.path().to_owned()), Limits::default());
        (directory, programs)
    }

    #[tokio::test]
    async fn a_release_is_passed_on_as_it_is() {
        let text = described().to_string();
        let (_directory, programs) = scene(&text);

        let release = programs.release().await.unwrap().unwrap();

        assert_eq!(BASE64_STANDARD.decode(&release.release).unwrap(), text.as_bytes());
        assert_eq!((release.version.as_str(), release.signature.as_str()), ("1.4.0", "signed"));
        assert_eq!((release.programs, release.missing), (vec![(PROGRAM.to_owned(), 3)], Vec::new()));
    }

    #[tokio::test]
    async fn programs_that_are_not_here_as_named_are_missing() {
        let (directory, programs) = scene(described().to_string());
        let missing = async || programs.release().await.unwrap().unwrap().missing;

        for content in ["two", "one more"] {
            write(&directory, "new", content);
            std::fs::rename(directory.path().join("new"), directory.path().join(PROGRAM)).unwrap();
            assert_eq!(missing().await, [PROGRAM], "{content}");
        }
        std::fs::remove_file(directory.path().join(PROGRAM)).unwrap();
        assert_eq!(missing().await, [PROGRAM]);
    }

    #[tokio::test]
    async fn what_cannot_be_offered_is_no_release() {
        let with = |name: &str, value: Value| {
            let mut release = described();
            release[name] = value;
            release.to_string()
        };
        let program = |name: &str, sum: &str| with("programs", json!({ name: { "bytes": 3, "sha256": sum } }));
        let faulty = [
            String::new(),
            "{".to_owned(),
            with("v", json!(2)),
            with("version", json!("")),
            with("version", json!("1.4.0 or so")),
            with("version", json!(format!("1.0.{}", "1".repeat(61)))),
            with("programs", json!({})),
            program("../etc/passwd", SUM_OF_ONE),
            program(PROGRAM, "7692"),
            with("padding", json!("x".repeat(MAX_RELEASE_BYTES))),
        ];
        for release in faulty {
            let (_directory, programs) = scene(&release);
            assert_eq!(programs.release().await.unwrap(), None, "{release}");
        }
    }

    #[tokio::test]
    async fn a_release_needs_a_signature_that_is_a_text() {
        for signature in [None, Some(vec![0xff]), Some(vec![0]), Some(vec![b'x'; MAX_RELEASE_SIGNATURE_BYTES + 1])] {
            let (directory, programs) = scene(described().to_string());
            match &signature {
                Some(signature) => write(&directory, SIGNATURE, signature),
                None => std::fs::remove_file(directory.path().join(SIGNATURE)).unwrap(),
            }
            assert_eq!(programs.release().await.unwrap(), None, "{:?}", signature.map(|it| it.len()));
        }
    }

    #[tokio::test]
    async fn a_replaced_release_is_read_again() {
        let (directory, programs) = scene("{");
        assert_eq!(programs.release().await.unwrap(), None);

        write(&directory, RELEASE, described().to_string());

        assert_eq!(programs.release().await.unwrap().unwrap().version, "1.4.0");
    }
}
