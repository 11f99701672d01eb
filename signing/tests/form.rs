//! What can be said of signatures without knowing anybody.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use signalbox_protocol::signed::Signature;
use signalbox_signing::ssh::SshError;
use signalbox_signing::{Author, FormError, form};

use support::{Keygen, PAYLOAD};

#[test]
fn a_signature_of_ssh_names_its_key_and_is_verified() {
    let keygen = Keygen::new();
    let lines = [keygen.generate("ada", "ed25519", ""), keygen.generate("ben", "ecdsa", "384")];
    let author = |name: &str, namespace: &str, payload: &[u8]| {
        let signature = Signature::Sshsig { signature: keygen.sign(name, namespace, PAYLOAD) };
        form::author(&signature, payload)
    };

    let [ada, ben] = ["ada", "ben"].map(|name| author(name, "signalbox-command-v1", PAYLOAD).unwrap());
    assert_eq!(author("ada", "signalbox-command-v1", PAYLOAD), Ok(ada.clone()));
    assert_ne!(ada, ben);
    for (author, line) in [ada, ben].into_iter().zip(lines) {
        assert_eq!(author, Author::Ssh(keygen.fingerprint(&line)));
    }
    assert_eq!(author("ada", "git", PAYLOAD), Err(FormError::Ssh(SshError::WrongNamespace)));
    assert_eq!(author("ada", "signalbox-command-v1", b"{}"), Err(FormError::Ssh(SshError::WrongSignature)));
    let cut = Signature::Sshsig { signature: "-----BEGIN SSH SIGNATURE-----".to_owned() };
    assert_eq!(form::author(&cut, PAYLOAD), Err(FormError::Ssh(SshError::NotArmored)));
    assert_eq!(form::author(&Signature::Unknown, PAYLOAD), Err(FormError::UnknownKind));
}
