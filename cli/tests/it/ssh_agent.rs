//! A real ssh-agent, and one of this test that holds a security key made of software.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use tempfile::TempDir;

use crate::keygen::{base64, string};
use crate::support::{Running, eventually};

pub struct SshAgent {
    room: TempDir,
    _running: Running,
}

impl SshAgent {
    pub async fn start() -> Self {
        let room = TempDir::new().unwrap();
        let mut command = Command::new("ssh-agent");
        command.args(["-D", "-a"]).arg(room.path().join("agent.sock"));
        let agent = Self { _running: Running::start(command), room };
        // The socket exists a moment before the ssh-agent listens on it.
        eventually("the ssh-agent listens", async || UnixStream::connect(agent.socket()).ok()).await;
        agent
    }

    pub fn socket(&self) -> PathBuf {
        self.room.path().join("agent.sock")
    }

    pub fn add(&self, key: &Path) {
        let mut command = Command::new("ssh-add");
        let output = command.arg("-q").arg(key).env("SSH_AUTH_SOCK", self.socket()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

const KIND: &[u8] = b"sk-ssh-ed25519@openssh.com";
const APPLICATION: &[u8] = b"ssh:";
const COUNTER: [u8; 4] = 7_u32.to_be_bytes();

/// What a FIDO key does, in software.
pub struct SecurityKey {
    pair: Arc<Ed25519KeyPair>,
    public: Vec<u8>,
}

impl SecurityKey {
    pub fn generate() -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let public = [string(KIND), string(pair.public_key().as_ref()), string(APPLICATION)].concat();
        Self { pair: Arc::new(pair), public }
    }

    pub fn line(&self) -> String {
        format!("{} {}", std::str::from_utf8(KIND).unwrap(), base64(&self.public))
    }

    /// Answers as an ssh-agent does, at `agent.sock` of the directory that it returns. The flags say whether somebody touched it.
    pub fn serve(&self, flags: u8) -> TempDir {
        let room = TempDir::new().unwrap();
        let listener = UnixListener::bind(room.path().join("agent.sock")).unwrap();
        let (pair, public) = (Arc::clone(&self.pair), self.public.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &pair, &public, flags);
            }
        });
        room
    }
}

fn answer(mut stream: UnixStream, pair: &Ed25519KeyPair, public: &[u8], flags: u8) {
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut request = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut request).unwrap();
        let answer = match request[0] {
            11 => [&[12, 0, 0, 0, 1], &string(public)[..], &string(b"key of ada")].concat(),
            13 => {
                // After the type and the key: the message, with its length before it and the flags of the request after it.
                let message = &request[1 + 4 + public.len() + 4..request.len() - 4];
                let hash = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
                let touched = [hash(APPLICATION), vec![flags], COUNTER.to_vec(), hash(message)].concat();
                let signature = pair.sign(&touched);
                let parts = [string(KIND), string(signature.as_ref()), vec![flags], COUNTER.to_vec()].concat();
                [vec![14], string(&parts)].concat()
            }
            _ => vec![5],
        };
        stream.write_all(&string(&answer)).unwrap();
    }
}
