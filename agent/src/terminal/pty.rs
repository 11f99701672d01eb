//! The agent's side of a pseudo-terminal: it writes input and reads output.

use std::io;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Pid;
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};
use signalbox_protocol::agent::TerminalSize;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};

/// How much may be typed, or pasted, before the program has read it.
pub const MAX_TYPED_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub struct Pty {
    fd: AsyncFd<OwnedFd>,
    typed: Mutex<Typed>,
    /// There is new input.
    key: Notify,
    size: watch::Sender<TerminalSize>,
}

#[derive(Debug, Default)]
struct Typed {
    bytes: Vec<u8>,
    /// More input than may wait: some of it was dropped.
    is_too_much: bool,
}

impl Pty {
    #[expect(
        deprecated,
        reason = "its successor is unsafe to call, for types that change their descriptor: this one cannot"
    )]
    pub fn new(fd: OwnedFd, size: TerminalSize) -> io::Result<Self> {
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Self { fd: AsyncFd::new(fd)?, typed: Mutex::default(), key: Notify::new(), size: watch::Sender::new(size) })
    }

    /// Queues input. It never waits.
    pub fn type_in(&self, text: &str) {
        let mut typed = self.typed.lock();
        if typed.bytes.len() + text.len() > MAX_TYPED_BYTES {
            typed.is_too_much = true;
        } else {
            typed.bytes.extend_from_slice(text.as_bytes());
        }
        drop(typed);
        self.key.notify_one();
    }

    /// Tells the program the terminal's size, with SIGWINCH.
    pub fn resize(&self, size: TerminalSize) {
        if let Err(error) = tcsetwinsize(&self.fd, winsize(size)) {
            tracing::debug!(%error, "cannot change the size of a terminal");
            return;
        }
        self.size.send_replace(size);
    }

    /// The sizes from now on.
    pub fn sizes(&self) -> watch::Receiver<TerminalSize> {
        self.size.subscribe()
    }

    /// Writes queued input while the program reads it. Returns when there is too much.
    pub async fn type_out(&self) {
        loop {
            // Created before the check, so that no input in between is missed.
            let key = self.key.notified();
            if self.typed.lock().is_too_much {
                return;
            }
            if self.typed.lock().bytes.is_empty() {
                key.await;
                continue;
            }
            let mut writable = tokio::select! {
                // Input that arrives while the program reads nothing must be checked, too.
                () = key => continue,
                Ok(writable) = self.fd.writable() => writable,
            };
            match writable.try_io(|fd| Ok(rustix::io::write(fd, &self.typed.lock().bytes)?)) {
                Ok(Ok(length)) => _ = self.typed.lock().bytes.drain(..length),
                // The program has ended; the other direction reports it.
                Ok(Err(_)) => return std::future::pending().await,
                Err(_) => {}
            }
        }
    }

    /// Reads output; 0 bytes when nobody has the other side open any more.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut readable = self.fd.readable().await?;
            match readable.try_io(|fd| Ok(rustix::io::read(fd, &mut *buffer)?)) {
                Ok(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => return Ok(0),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) => return read,
                Err(_) => {}
            }
        }
    }

    /// The process group that receives keyboard signals.
    pub fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.fd).ok()
    }
}

pub fn winsize(size: TerminalSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}
