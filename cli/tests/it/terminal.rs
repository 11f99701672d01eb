//! A terminal with the program in it.

use std::fmt;
use std::io::{Read, Write};
use std::process::Child;
use std::sync::Arc;

use parking_lot::Mutex;
use pty_process::Size;
use pty_process::blocking::{Command, Pts, Pty, open};
use rustix::termios::{LocalModes, tcgetattr};

use crate::support::{Site, eventually};

pub struct Terminal {
    pub child: Child,
    pty: Arc<Pty>,
    /// Kept open, so that the terminal outlives the program.
    pts: Pts,
    output: Arc<Mutex<Vec<u8>>>,
}

/// What no program writes.
const END: u8 = 0;

impl Terminal {
    /// The program in a terminal of 100 columns and 30 rows.
    pub fn start(site: &Site, arguments: &[&str]) -> Self {
        Self::of(&site.command(arguments))
    }

    /// The same without a service and a token in the environment.
    pub fn start_plain(site: &Site, arguments: &[&str]) -> Self {
        Self::of(&site.plain_command(arguments))
    }

    pub fn of(command: &std::process::Command) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(30, 100)).unwrap();
        let variables = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let program = Command::new(command.get_program()).env_clear().envs(variables).env("TERM", "xterm-256color");
        let child = program.args(command.get_args()).spawn_borrowed(&pts).unwrap();
        let (pty, output) = (Arc::new(pty), Arc::new(Mutex::new(Vec::new())));
        let (reader, kept) = (Arc::clone(&pty), Arc::clone(&output));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = (&*reader).read(&mut buffer) {
                kept.lock().extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, pty, pts, output }
    }

    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.output.lock()).into_owned()
    }

    pub fn enter(&self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).unwrap();
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    pub async fn until(&self, text: &str) {
        let missing = fmt::from_fn(|f| write!(f, "{text} in {}", self.shown()));
        eventually(missing, async || self.shown().contains(text).then_some(())).await;
    }

    pub fn signal(&self, name: &str) {
        let status = std::process::Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Waits until keys reach the program one by one, and nobody shows them.
    pub async fn raw(&self) {
        let is_raw = || !tcgetattr(&self.pts).unwrap().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO);
        eventually("the terminal is raw", async || is_raw().then_some(())).await;
    }

    /// Waits for its end. Asserts that the terminal is as it was before.
    pub async fn ended(&mut self) -> Option<i32> {
        let Self { child, .. } = self;
        let status = eventually("the program ends", async || child.try_wait().unwrap()).await;
        let modes = tcgetattr(&self.pts).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{modes:?}");
        // What the program wrote last is read before this.
        rustix::io::write(&self.pts, &[END]).unwrap();
        eventually("all that it wrote is read", async || self.output.lock().ends_with(&[END]).then_some(())).await;
        self.output.lock().pop();
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
