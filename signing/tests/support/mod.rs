//! ssh-keygen in a directory of its own, and the encodings of SSH.

#![allow(dead_code)]

use std::process::{Command, Stdio};
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::{Signature, Signed};
use tempfile::TempDir;

pub const PAYLOAD: &[u8] = br#"{"v":1,"servers":["web-1"],"kind":"command","command":"systemctl restart nginx","timeout_seconds":60,"not_before":"2026-11-26T10:00:00Z","expires_at":"2026-11-26T10:05:00Z","nonce":"0123456789abcdef0123456789abcdef"}"#;

/// Within the time of [`PAYLOAD`].
pub fn now() -> Timestamp {
    static NOW: LazyLock<Timestamp> = LazyLock::new(|| Timestamp::parse("2026-11-26T10:01:00Z").unwrap());
    *NOW
}

pub fn signed(payload: &[u8], signatures: Vec<Signature>) -> Signed {
    Signed { payload: base64(payload), signatures }
}

pub fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// A string of RFC 4251.
pub fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// The bytes of a key in a line `type base64 comment`.
pub fn key_bytes(line: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(line.split(' ').nth(1).unwrap()).unwrap()
}

/// The key of a passkey in base64url of its COSE form, made of the point in a line of an ECDSA key with 256 bits.
pub fn passkey(line: &str) -> String {
    let key = key_bytes(line);
    let (x, y) = key[key.len() - 64..].split_at(32);
    let cose = [&[0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20], x, &[0x22, 0x58, 0x20], y].concat();
    BASE64_URL_SAFE_NO_PAD.encode(cose)
}

/// The bytes within the lines of a signature.
pub fn blob(text: &str) -> Vec<u8> {
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    BASE64_STANDARD.decode(body).unwrap()
}

/// The opposite of [`blob`].
pub fn armored(blob: &[u8]) -> String {
    let body = base64(blob);
    let lines: Vec<&str> = body.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

/// OpenSSH's program, with its files.
pub struct Keygen(TempDir);

impl Keygen {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The file of a key.
    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new("ssh-keygen");
        command.current_dir(self.0.path()).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).status().expect("ssh-keygen (package openssh-client)").success()
    }

    /// Makes a key without a passphrase. Returns its type, itself and its comment, as allowed signers have them.
    pub fn generate(&self, name: &str, kind: &str, bits: &str) -> String {
        let size: &[&str] = if bits.is_empty() { &[] } else { &["-b", bits] };
        assert!(self.run(&[&["-q", "-t", kind, "-N", "", "-C", "test", "-f", name], size].concat()));
        std::fs::read_to_string(self.0.path().join(format!("{name}.pub"))).unwrap().trim().to_owned()
    }

    /// What `ssh-keygen -l` says of a key in a line.
    pub fn fingerprint(&self, line: &str) -> String {
        std::fs::write(self.0.path().join("shown.pub"), line).unwrap();
        let mut command = Command::new("ssh-keygen");
        command.current_dir(self.0.path()).args(["-l", "-f", "shown.pub"]);
        let shown = String::from_utf8(command.output().unwrap().stdout).unwrap();
        shown.split(' ').nth(1).unwrap().to_owned()
    }

    pub fn sign(&self, key: &str, namespace: &str, payload: &[u8]) -> String {
        let file = self.0.path().join("payload");
        _ = std::fs::remove_file(self.0.path().join("payload.sig"));
        std::fs::write(&file, payload).unwrap();
        assert!(self.run(&["-Y", "sign", "-q", "-f", key, "-n", namespace, "payload"]));
        std::fs::read_to_string(self.0.path().join("payload.sig")).unwrap()
    }

    /// Whether OpenSSH says that the principal signed.
    pub fn verifies(&self, signers: &str, principal: &str, payload: &[u8], signature: &str) -> bool {
        let path = |name: &str| self.0.path().join(name);
        std::fs::write(path("signers"), format!("{signers}\n")).unwrap();
        std::fs::write(path("signature"), signature).unwrap();
        std::fs::write(path("payload"), payload).unwrap();
        let mut command = Command::new("ssh-keygen");
        let arguments =
            ["-Y", "verify", "-f", "signers", "-I", principal, "-n", "signalbox-command-v1", "-s", "signature"];
        command.current_dir(self.0.path()).args(arguments).stdin(std::fs::File::open(path("payload")).unwrap());
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }
}
