//! The pipes between the agent and a command. Output is read as it arrives and input is written as the command reads it, so
//! that neither waits for the other.
//!
//! Two pipes have no common clock: what a command writes to both at nearly the same time may be read in another order.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;

use signalbox_protocol::agent::Stream;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::text::Decoder;

/// Half of a pipe's capacity.
const BUFFER_BYTES: usize = 32 * 1024;

#[derive(Debug)]
pub struct Pipes {
    stdin: Input,
    stdout: Tap,
    stderr: Tap,
    /// The stream that was read last: the other one comes first, so that a flood on one does not hide the other.
    last: Stream,
    buffer: Vec<u8>,
}

impl Pipes {
    /// Takes a child's pipes.
    pub fn of(child: &mut Child, input: Option<String>) -> io::Result<Self> {
        let stdin = child.stdin.take().map(OwnedFd::from).map(Sender::from_owned_fd).transpose()?;
        Ok(Self {
            stdin: Input { pipe: stdin, text: input.unwrap_or_default().into_bytes(), written: 0 },
            stdout: Tap::new(Stream::Stdout, child.stdout.take().map(OwnedFd::from))?,
            stderr: Tap::new(Stream::Stderr, child.stderr.take().map(OwnedFd::from))?,
            last: Stream::Stderr,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Moves data, piece by piece, until `end` resolves.
    pub async fn flow_until<T>(&mut self, end: impl Future<Output = T>, keep: &mut impl FnMut(Stream, &str)) -> T {
        tokio::pin!(end);
        loop {
            tokio::select! {
                // Polled first, so that a flood of output delays no deadline.
                biased;
                end = &mut end => return end,
                stream = self.ready() => self.move_one(stream, keep).await,
            }
        }
    }

    /// Reads until nobody can write any more.
    pub async fn drain(&mut self, keep: &mut impl FnMut(Stream, &str)) {
        self.stdin.pipe = None;
        while self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            let stream = self.ready().await;
            self.move_one(stream, keep).await;
        }
    }

    /// Handles the rest of a character that never ended.
    pub fn finish(&mut self, keep: &mut impl FnMut(Stream, &str)) {
        for tap in [&mut self.stdout, &mut self.stderr] {
            if let Some(text) = tap.decoder.finish() {
                keep(tap.stream, text);
            }
        }
    }

    /// The output that can be read, or none for input that can be written. Waits for ever when all is closed.
    async fn ready(&self) -> Option<Stream> {
        let (first, second) = match self.last {
            Stream::Stdout => (&self.stderr, &self.stdout),
            Stream::Stderr => (&self.stdout, &self.stderr),
        };
        tokio::select! {
            biased;
            () = first.ready() => Some(first.stream),
            () = second.ready() => Some(second.stream),
            () = self.stdin.ready() => None,
        }
    }

    /// Yields afterwards: a pipe that is always full must not block the agent.
    async fn move_one(&mut self, stream: Option<Stream>, keep: &mut impl FnMut(Stream, &str)) {
        let tap = match stream {
            Some(Stream::Stdout) => &mut self.stdout,
            Some(Stream::Stderr) => &mut self.stderr,
            None => return self.stdin.write(),
        };
        self.last = tap.stream;
        let text = tap.read(&mut self.buffer);
        if !text.is_empty() {
            keep(tap.stream, &text);
            tokio::task::yield_now().await;
        }
    }
}

/// One output of the command; ended when it has no pipe.
#[derive(Debug)]
struct Tap {
    stream: Stream,
    pipe: Option<Receiver>,
    decoder: Decoder,
}

impl Tap {
    fn new(stream: Stream, pipe: Option<OwnedFd>) -> io::Result<Self> {
        let pipe = pipe.map(Receiver::from_owned_fd).transpose()?;
        Ok(Self { stream, pipe, decoder: Decoder::default() })
    }

    async fn ready(&self) {
        match &self.pipe {
            // The read will return the error.
            Some(pipe) => _ = pipe.readable().await,
            None => std::future::pending().await,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> String {
        let Some(pipe) = &self.pipe else { return String::new() };
        match pipe.try_read(buffer) {
            Ok(length @ 1..) => self.decoder.decode(buffer.get(..length).unwrap_or_default()),
            Err(error) if is_temporary(&error) => String::new(),
            Ok(0) | Err(_) => {
                self.pipe = None;
                String::new()
            }
        }
    }
}

/// What the command reads from its standard input. The pipe is closed after it.
#[derive(Debug)]
struct Input {
    pipe: Option<Sender>,
    text: Vec<u8>,
    written: usize,
}

impl Input {
    async fn ready(&self) {
        match &self.pipe {
            Some(pipe) => _ = pipe.writable().await,
            None => std::future::pending().await,
        }
    }

    fn write(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        match pipe.try_write(self.text.get(self.written..).unwrap_or_default()) {
            Ok(length) => self.written += length,
            Err(error) if is_temporary(&error) => return,
            // A command need not read its input.
            Err(_) => self.written = self.text.len(),
        }
        if self.written >= self.text.len() {
            self.pipe = None;
            self.text = Vec::new();
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
