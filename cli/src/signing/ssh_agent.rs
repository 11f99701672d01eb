//! The ssh-agent: which keys it has, and what they sign (draft-ietf-sshm-ssh-agent). Security keys sign through it.

use std::io::{self, Read, Write};

use signalbox_signing::ssh::{PublicKey, Reader, SshError, fingerprint, put_string};

use super::Key;
use crate::error::Failure;
use crate::output;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// Of RSA keys: with SHA-512 in place of SHA-1.
const RSA_SHA2_512: u32 = 4;
/// The longest message that OpenSSH's agent sends or takes.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// Of a line of the list of keys; an agent may have hundreds.
const MAX_LISTED: usize = 20;

/// The key that is meant: by its fingerprint or its comment, or the only one.
pub async fn choose(wanted: Option<&str>) -> Result<Key, Failure> {
    pick(identities().await?, wanted)
}

/// The private key of this public key.
pub async fn of_public(public: Vec<u8>) -> Result<Key, Failure> {
    let wanted = fingerprint(&public);
    let found = identities().await?.into_iter().find(|key| key.public == public);
    found.ok_or_else(|| Failure::usage(format!("the ssh-agent does not have the key {wanted}: add it with ssh-add")))
}

/// The name of the algorithm and the signature, and of security keys what they add.
pub async fn sign(key: &Key, message: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let mut request = vec![SIGN_REQUEST];
    let is_rsa = PublicKey::parse(&key.public).is_ok_and(|key| key.name() == "ssh-rsa");
    let flags = if is_rsa { RSA_SHA2_512 } else { 0 };
    put_string(&mut request, &key.public).map_err(malformed)?;
    put_string(&mut request, &message).map_err(malformed)?;
    request.extend_from_slice(&flags.to_be_bytes());
    if key.needs_touch() {
        output::note("Touch the security key.");
    }
    let answer = ask(request).await?;
    let mut reader = Reader::new(&answer);
    if reader.byte().map_err(malformed)? != SIGN_RESPONSE {
        return Err(Failure::failed(format!(
            "the ssh-agent did not sign with {}: it is locked, somebody declined, or the security key was not touched",
            key.words()
        )));
    }
    Ok(reader.string().map_err(malformed)?.to_vec())
}

async fn identities() -> Result<Vec<Key>, Failure> {
    let answer = ask(vec![REQUEST_IDENTITIES]).await?;
    read_identities(&answer).map_err(malformed)
}

/// Those that can sign here: neither certificates nor kinds that no server takes.
fn read_identities(answer: &[u8]) -> Result<Vec<Key>, SshError> {
    let mut reader = Reader::new(answer);
    if reader.byte()? != IDENTITIES_ANSWER {
        return Err(SshError::Malformed);
    }
    let mut keys = Vec::new();
    for _ in 0..reader.number()? {
        let (public, comment) = (reader.string()?, reader.string()?);
        if PublicKey::parse(public).is_ok() {
            keys.push(Key::of_agent(public.to_vec(), String::from_utf8_lossy(comment).into_owned()));
        }
    }
    Ok(keys)
}

fn pick(mut keys: Vec<Key>, wanted: Option<&str>) -> Result<Key, Failure> {
    if keys.is_empty() {
        return Err(Failure::usage("the ssh-agent has no key that can sign: add one with ssh-add"));
    }
    let all: Vec<String> = keys.iter().map(|key| format!("  {}", key.words())).take(MAX_LISTED).collect();
    if let Some(wanted) = wanted {
        keys.retain(|key| fingerprint(&key.public) == wanted || key.comment == wanted);
    }
    let advice = format!("name one by its fingerprint, as in --sign ssh-agent:SHA256:...\n{}", all.join("\n"));
    match (keys.pop(), keys.len(), wanted) {
        (Some(key), 0, _) => Ok(key),
        (None, _, wanted) => {
            Err(Failure::usage(format!("the ssh-agent has no key {:?}: {advice}", wanted.unwrap_or_default())))
        }
        (Some(_), more, None) => Err(Failure::usage(format!("the ssh-agent has {} keys: {advice}", more + 1))),
        (Some(_), more, Some(wanted)) => {
            Err(Failure::usage(format!("{} keys of the ssh-agent are {wanted:?}: {advice}", more + 1)))
        }
    }
}

fn malformed(_: SshError) -> Failure {
    Failure::failed("the ssh-agent gave an answer that cannot be read")
}

/// Elsewhere, because a person may take a while to touch a key or to answer the agent's own question.
async fn ask(request: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let asked = tokio::task::spawn_blocking(move || exchange(connect()?, &request)).await;
    let asked = asked.unwrap_or_else(|ended| Err(io::Error::other(ended)));
    asked.map_err(|error| Failure::usage(format!("cannot use the ssh-agent: {error}")))
}

fn exchange(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    put_string(&mut message, request).map_err(io::Error::other)?;
    stream.write_all(&message)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE_BYTES {
        return Err(io::Error::other("its answer is too long"));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

#[cfg(unix)]
fn connect() -> io::Result<impl Read + Write> {
    let path = std::env::var_os("SSH_AUTH_SOCK").filter(|path| !path.is_empty()).ok_or_else(|| {
        io::Error::other("SSH_AUTH_SOCK is not set: start an agent with `eval $(ssh-agent)`, or name a key file")
    })?;
    std::os::unix::net::UnixStream::connect(path)
}

/// A named pipe, which is opened as a file is.
#[cfg(windows)]
fn connect() -> io::Result<impl Read + Write> {
    let path = std::env::var_os("SSH_AUTH_SOCK").unwrap_or_else(|| r"\\.\pipe\openssh-ssh-agent".into());
    std::fs::OpenOptions::new().read(true).write(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(comment: &str, last: u8) -> Key {
        let mut public = Vec::new();
        put_string(&mut public, b"ssh-ed25519").unwrap();
        put_string(&mut public, &[last; 32]).unwrap();
        Key::of_agent(public, comment.to_owned())
    }

    fn picked(keys: Vec<Key>, wanted: Option<&str>) -> Result<String, String> {
        pick(keys, wanted).map(|key| key.comment).map_err(|failure| failure.to_string())
    }

    #[test]
    fn one_key_is_meant_or_the_rest_is_listed() {
        let both = || vec![key("ada", 1), key("ben", 2)];
        let of_ben = fingerprint(&key("", 2).public);

        assert_eq!(picked(vec![key("ada", 1)], None), Ok("ada".to_owned()));
        assert_eq!(picked(both(), Some("ben")), Ok("ben".to_owned()));
        assert_eq!(picked(both(), Some(&of_ben)), Ok("ben".to_owned()));
        let refusal = picked(both(), None).unwrap_err();
        assert!(refusal.starts_with("the ssh-agent has 2 keys") && refusal.contains(&of_ben), "{refusal}");
        assert!(picked(both(), Some("eve")).unwrap_err().starts_with("the ssh-agent has no key \"eve\""));
        assert!(picked(vec![key("a", 1), key("a", 2)], Some("a")).unwrap_err().starts_with("2 keys of the ssh-agent"));
        assert!(picked(Vec::new(), None).unwrap_err().contains("ssh-add"));
    }

    #[test]
    fn certificates_and_what_is_cut_are_no_keys() {
        let mut answer = vec![IDENTITIES_ANSWER, 0, 0, 0, 2];
        put_string(&mut answer, b"\0\0\0\x1cssh-ed25519-cert-v01@openssh").unwrap();
        put_string(&mut answer, b"certificate").unwrap();
        put_string(&mut answer, &key("", 1).public).unwrap();
        put_string(&mut answer, b"ada").unwrap();

        let comments: Vec<String> = read_identities(&answer).unwrap().into_iter().map(|key| key.comment).collect();

        assert_eq!(comments, ["ada"]);
        for length in 0..answer.len() {
            assert!(read_identities(&answer[..length]).is_err(), "{length}");
        }
    }
}
