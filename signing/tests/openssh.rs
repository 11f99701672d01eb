//! Signatures that OpenSSH made, and security keys in software whose signatures OpenSSH accepts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use signalbox_protocol::signed::Signature;
use signalbox_signing::ssh::{Reader, SshError, SshSignature, fingerprint, to_sign};
use signalbox_signing::{NAMESPACE, Signers, signers_of};
use support::{Keygen, PAYLOAD, armored, blob, now, signed, string};

/// The kinds of keys that ssh-keygen makes without hardware.
const KINDS: [(&str, &str); 6] =
    [("ed25519", ""), ("ecdsa", "256"), ("ecdsa", "384"), ("ecdsa", "521"), ("rsa", "2048"), ("rsa", "3072")];

fn is_by(signers: &Signers, payload: &[u8], signature: &str) -> bool {
    let signature = Signature::Sshsig { signature: signature.to_owned() };
    !signers_of(&signed(payload, vec![signature]), payload, signers, now()).is_empty()
}

/// Each copy of the bytes with one other bit.
fn one_bit_off(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut altered = bytes.to_vec();
        altered[bit / 8] ^= 1 << (bit % 8);
        altered
    })
}

#[test]
fn signatures_of_every_kind_of_key_are_verified_and_no_bit_of_them_can_be_changed() {
    let mut tries = 0;
    for (kind, bits) in KINDS {
        let keygen = Keygen::new();
        let line = keygen.generate("key", kind, bits);
        let text = keygen.sign("key", NAMESPACE, PAYLOAD);
        let signers = Signers::parse(&format!("ada {line}")).unwrap();
        assert!(is_by(&signers, PAYLOAD, &text), "{kind} {bits}");

        for payload in one_bit_off(PAYLOAD) {
            assert!(!is_by(&signers, &payload, &text), "{kind} {bits}");
            tries += 1;
        }
        for altered in one_bit_off(&blob(&text)) {
            assert!(!is_by(&signers, PAYLOAD, &armored(&altered)), "{kind} {bits}");
            tries += 1;
        }
        for altered in one_bit_off(text.as_bytes()).filter_map(|bytes| String::from_utf8(bytes).ok()) {
            assert!(!is_by(&signers, PAYLOAD, &altered), "{kind} {bits}: {altered}");
            tries += 1;
        }
        let key = support::key_bytes(&line);
        for altered in one_bit_off(&key) {
            let other =
                Signers::parse(&format!("ada {} {}", line.split_once(" ").unwrap().0, support::base64(&altered)));
            assert!(other.is_err() || !is_by(&other.unwrap(), PAYLOAD, &text), "{kind} {bits}");
            tries += 1;
        }
    }
    println!("{tries} tries: altered payloads, signatures and keys");
    assert!(tries > 50_000, "{tries}");
}

#[test]
fn a_signature_for_another_purpose_is_none() {
    let keygen = Keygen::new();
    let line = keygen.generate("key", "ed25519", "");
    let signers = Signers::parse(&format!("ada {line}")).unwrap();

    for namespace in ["file", "git", "signalbox-command-v2", "signalbox-command-v1 "] {
        let text = keygen.sign("key", namespace, PAYLOAD);
        assert!(!is_by(&signers, PAYLOAD, &text), "{namespace}");
        let verified = SshSignature::parse(&text).unwrap().verify(NAMESPACE, PAYLOAD);
        assert_eq!(verified, Err(SshError::WrongNamespace), "{namespace}");
    }
}

#[test]
fn a_short_rsa_key_and_dsa_are_refused() {
    let keygen = Keygen::new();
    let short = keygen.generate("short", "rsa", "1024");

    let refusal = Signers::parse(&format!("ada {short}")).unwrap_err();

    assert_eq!(refusal.to_string(), "line 1: the key: an RSA key needs 2048 to 8192 bits");
    assert!(Signers::parse("ada ssh-dss AAAAB3NzaC1kc3M=").is_err());
}

/// What SSHSIG signs for the payload.
fn message(payload: &[u8]) -> Vec<u8> {
    let hash = digest(&SHA512, payload);
    [b"SSHSIG".to_vec(), string(NAMESPACE.as_bytes()), string(b""), string(b"sha512"), string(hash.as_ref())].concat()
}

/// An SSHSIG with this key and signature.
fn sshsig(key: &[u8], signature: &[u8]) -> String {
    let parts = [string(key), string(NAMESPACE.as_bytes()), string(b""), string(b"sha512"), string(signature)];
    armored(&[b"SSHSIG\0\0\0\x01".to_vec(), parts.concat()].concat())
}

/// What a security key signs.
fn touched(application: &[u8], flags: u8, counter: u32) -> Vec<u8> {
    let hash = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
    [hash(application), vec![flags], counter.to_be_bytes().to_vec(), hash(&message(PAYLOAD))].concat()
}

const APPLICATION: &[u8] = b"ssh:";

/// Signs a message.
type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

struct SecurityKey {
    kind: &'static str,
    public: Vec<u8>,
    sign: Sign,
}

impl SecurityKey {
    fn ed25519() -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let kind = "sk-ssh-ed25519@openssh.com";
        let public = [string(kind.as_bytes()), string(pair.public_key().as_ref()), string(APPLICATION)].concat();
        Self { kind, public, sign: Box::new(move |message| pair.sign(message).as_ref().to_vec()) }
    }

    fn ecdsa() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let kind = "sk-ecdsa-sha2-nistp256@openssh.com";
        let point = pair.public_key().as_ref().to_vec();
        let parts = [kind.as_bytes(), b"nistp256", &point, APPLICATION];
        let sign = move |message: &[u8]| {
            let fixed = pair.sign(&SystemRandom::new(), message).unwrap();
            let (r, s) = fixed.as_ref().split_at(32);
            [integer(r), integer(s)].concat()
        };
        Self { kind, public: parts.map(string).concat(), sign: Box::new(sign) }
    }

    fn sign(&self, flags: u8) -> String {
        let signature = (self.sign)(&touched(APPLICATION, flags, 7));
        let parts = [string(self.kind.as_bytes()), string(&signature), vec![flags], 7_u32.to_be_bytes().to_vec()];
        sshsig(&self.public, &parts.concat())
    }

    fn line(&self) -> String {
        format!("{} {}", self.kind, support::base64(&self.public))
    }
}

fn integer(bytes: &[u8]) -> Vec<u8> {
    let digits = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let sign: &[u8] = if digits[0] >= 0x80 { &[0] } else { &[] };
    string(&[sign, digits].concat())
}

#[test]
fn a_touched_security_key_signs_as_openssh_says() {
    let mut tries = 0;
    for key in [SecurityKey::ed25519(), SecurityKey::ecdsa()] {
        let signers = Signers::parse(&format!("ada {}", key.line())).unwrap();
        let text = key.sign(1);
        let keygen = Keygen::new();

        assert!(is_by(&signers, PAYLOAD, &text), "{}", key.kind);
        assert!(is_by(&signers, PAYLOAD, &key.sign(5)), "{}", key.kind);
        assert!(keygen.verifies(&format!("ada {}", key.line()), "ada", PAYLOAD, &text), "{}", key.kind);
        assert!(!is_by(&signers, PAYLOAD, &key.sign(0)), "nobody touched {}", key.kind);
        for altered in one_bit_off(&blob(&text)) {
            assert!(!is_by(&signers, PAYLOAD, &armored(&altered)), "{}", key.kind);
            tries += 1;
        }
    }
    println!("{tries} tries: altered signatures of security keys");
    assert!(tries > 3_000, "{tries}");
}

#[test]
fn rsa_signs_with_sha_256_too_and_never_with_sha_1() {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let (e, n) = (pair.public_key().exponent(), pair.public_key().modulus());
    let (e, n) = (e.big_endian_without_leading_zero(), n.big_endian_without_leading_zero());
    let public = [string(b"ssh-rsa"), integer(e), integer(n)].concat();
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &message(PAYLOAD), &mut signature).unwrap();
    let signers = Signers::parse(&format!("ada ssh-rsa {}", support::base64(&public))).unwrap();
    let named = |name: &[u8]| sshsig(&public, &[string(name), string(&signature)].concat());

    assert!(is_by(&signers, PAYLOAD, &named(b"rsa-sha2-256")));
    for name in [&b"ssh-rsa"[..], b"rsa-sha2-512", b""] {
        assert!(!is_by(&signers, PAYLOAD, &named(name)), "{name:?}");
    }
}

#[test]
fn openssh_and_we_agree_about_files_of_signers() {
    let keygen = Keygen::new();
    let (ada, ben) = (keygen.generate("ada", "ed25519", ""), keygen.generate("ben", "ecdsa", "256"));
    let text = keygen.sign("ada", NAMESPACE, PAYLOAD);
    let files = [
        format!("ada {ada}\nben {ben}"),
        format!("# comment\n\n  ada \t {ada}"),
        format!("ada,ada@example.org {ada}"),
        format!("ada namespaces=\"git,signalbox-*\" {ada}"),
        format!("ada namespaces=\"git\" {ada}"),
        format!("ada namespaces=\"signalbox-*,!signalbox-command-v1\" {ada}"),
        format!("ada valid-after=\"20200101Z\",valid-before=\"20990101Z\" {ada}"),
        format!("ada valid-before=\"20200101\" {ada}"),
        format!("ada valid-after=\"209901010000\" {ada}"),
        format!("ada valid-before=\"20200101Z\" {ada}\nada {ada}"),
        format!("ben {ben}"),
    ];

    let mut accepted = 0;
    for file in files {
        let signers = Signers::parse(&file).unwrap();
        let ours = is_by(&signers, PAYLOAD, &text);
        assert_eq!(ours, keygen.verifies(&file, "ada", PAYLOAD, &text), "{file}");
        accepted += usize::from(ours);
    }
    assert_eq!(accepted, 6);
}

#[test]
fn a_signature_is_written_as_openssh_writes_it() {
    for (kind, bits) in KINDS {
        let keygen = Keygen::new();
        keygen.generate("key", kind, bits);
        let text = keygen.sign("key", NAMESPACE, PAYLOAD);
        let read = SshSignature::parse(&text).unwrap();

        let raw = raw_signature(&blob(&text));
        let written = SshSignature::new(read.public_key().to_vec(), NAMESPACE, raw).to_text().unwrap();

        assert_eq!(written, text, "{kind} {bits}");
    }
    assert_eq!(to_sign(NAMESPACE, PAYLOAD).unwrap(), message(PAYLOAD));
}

#[test]
fn a_fingerprint_is_what_ssh_keygen_says() {
    let keygen = Keygen::new();
    let line = keygen.generate("key", "ed25519", "");

    assert_eq!(fingerprint(&support::key_bytes(&line)), keygen.fingerprint(&line));
}

/// The last part of an SSHSIG.
fn raw_signature(blob: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(&blob[10..]);
    (0..5).map(|_| reader.string().unwrap().to_vec()).last().unwrap()
}
