//! One open terminal: a login shell behind a pseudo-terminal, from its start to its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pts};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentMessage, RequestError, TerminalOutput, TerminalSize};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, timeout};

use super::login::Login;
use super::pty::Pty;
use crate::process::{Group, is_alive};
use crate::recordings::{RecordError, Recording};
use crate::streams::StreamPort;
use crate::text::Decoder;

/// The text of one message; bytes that are not UTF-8 become three times as long, which is still far below 64 KiB.
const BUFFER_BYTES: usize = 16 * 1024;
/// For what the shell wrote just before it ended, while a process in the background holds the terminal open.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// The most bytes of that: a process in the background may write for ever.
const MAX_LAST_BYTES: usize = 256 * 1024;
/// The time that programs have to end on their own when their terminal is closed.
const GRACE: Duration = Duration::from_secs(2);

/// Hangs up when it is dropped before its shell has ended.
#[derive(Debug)]
pub struct Console {
    /// None before the shell has started, and once it has ended or was left to end.
    shell: Option<Group>,
    pub pty: Arc<Pty>,
    /// Made with the terminal, so that no change of its size is missed before the shell has started.
    sizes: watch::Receiver<TerminalSize>,
    proc: PathBuf,
    /// Its permit among the open terminals, returned when everything has ended.
    place: Option<OwnedSemaphorePermit>,
}

/// The shell's side of a terminal in which no shell runs yet.
pub struct Vacant(Pts);

impl Console {
    /// A terminal without a shell. What is typed waits for it.
    pub fn open(
        size: TerminalSize,
        proc: PathBuf,
        place: OwnedSemaphorePermit,
    ) -> Result<(Self, Vacant), pty_process::Error> {
        let (pty, pts) = pty_process::blocking::open()?;
        // Before the shell reads it.
        pty.resize(Size::new(size.rows, size.columns))?;
        let pty = Arc::new(Pty::new(pty.into(), size)?);
        let sizes = pty.sizes();
        Ok((Self { shell: None, pty, sizes, proc, place: Some(place) }, Vacant(pts)))
    }

    /// Starts the shell.
    pub fn start(&mut self, login: &Login, Vacant(pts): Vacant) -> std::io::Result<()> {
        let command = Command::from(login.command()).arg0(login.arg0());
        self.shell = Some(Group::start(|| command.spawn(pts).map_err(std::io::Error::other))?);
        Ok(())
    }

    /// Sends output until the shell ends, after it was recorded, if it is. Returns the exit code.
    pub async fn run(mut self, port: StreamPort, recording: Option<Recording>) -> Result<Value, RequestError> {
        let Some(shell) = self.shell.as_mut() else { return Ok(Value::Null) };
        let output = Output { port, recording };
        tokio::select! {
            biased;
            shown = show(&self.pty, &mut self.sizes, shell, &output) => shown?,
            () = self.pty.type_out() => {
                return Err(RequestError::new("input_overflow", "the program does not read what is typed"));
            }
        }
        // A shell that has closed its terminal but is alive is ended like any other.
        let status = match timeout(GRACE, shell.exited()).await {
            Ok(()) => self.shell.take().and_then(Group::end),
            Err(_) => None,
        };
        Ok(json!({ "exit_code": status.map(exit_code) }))
    }
}

/// Sends the terminal's output, as far as there is credit, until the shell has ended and everything was sent.
async fn show(
    pty: &Pty,
    sizes: &mut watch::Receiver<TerminalSize>,
    shell: &mut Group,
    output: &Output,
) -> Result<(), RequestError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut decoder = Decoder::default();
    let mut last: Option<usize> = None;
    loop {
        let read = match last {
            Some(bytes) if bytes >= MAX_LAST_BYTES => Ok(0),
            Some(_) => timeout(LAST_OUTPUT, pty.read(&mut buffer)).await.unwrap_or(Ok(0)),
            None => tokio::select! {
                biased;
                () = shell.exited() => {
                    last = Some(0);
                    continue;
                }
                Ok(()) = sizes.changed() => {
                    let size = *sizes.borrow_and_update();
                    output.resized(size).await?;
                    continue;
                }
                read = pty.read(&mut buffer) => read,
            },
        };
        let length = read.map_err(|error| RequestError::new("agent_error", &error.to_string()))?;
        if length == 0 {
            break;
        }
        last = last.map(|bytes| bytes + length);
        output.send(decoder.decode(buffer.get(..length).unwrap_or_default())).await?;
    }
    output.send(decoder.finish().unwrap_or_default().to_owned()).await
}

/// Where output goes.
struct Output {
    port: StreamPort,
    recording: Option<Recording>,
}

impl Output {
    /// Records output, and then sends it: nothing is shown that is not recorded.
    async fn send(&self, data: String) -> Result<(), RequestError> {
        if data.is_empty() {
            return Ok(());
        }
        if let Some(recording) = &self.recording {
            recording.output(&data).await.map_err(unrecorded)?;
        }
        let (cost, stream_id) = (data.len() as u64, self.port.stream_id);
        self.port.send(cost, AgentMessage::TerminalOutput(TerminalOutput { stream_id, data, offset: None })).await
    }

    async fn resized(&self, size: TerminalSize) -> Result<(), RequestError> {
        match &self.recording {
            Some(recording) => recording.resized(size).await.map_err(unrecorded),
            None => Ok(()),
        }
    }
}

/// Why a terminal whose recording cannot continue has ended.
fn unrecorded(error: RecordError) -> RequestError {
    error.of_terminal("the terminal was closed, because it cannot be recorded any longer")
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

impl Drop for Console {
    /// Closing the terminal sends SIGHUP to its session's leader and to the foreground; processes that ignore it are killed.
    /// Processes in the background that are meant to outlive the terminal do, as after any other hang-up.
    fn drop(&mut self) {
        let Some(shell) = self.shell.take() else { return };
        let foreground = self.pty.foreground();
        for group in foreground.into_iter().chain([shell.id()]) {
            let _ = kill_process_group(group, Signal::HUP);
            let _ = kill_process_group(group, Signal::CONT);
        }
        // Without a runtime the shell is killed at once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(hang_up(shell, foreground, self.proc.clone(), self.place.take()));
        }
    }
}

async fn hang_up(shell: Group, foreground: Option<Pid>, proc: PathBuf, place: Option<OwnedSemaphorePermit>) {
    // The session's number belongs to no other process until its leader is reaped, which `shell` ensures.
    let session = shell.id();
    let mut groups: Vec<Pid> = foreground.into_iter().collect();
    groups.push(session);
    let end = Instant::now() + GRACE;
    for group in groups {
        // What cannot be seen: only the session's number is surely nobody else's.
        while is_alive(&proc, group, Some(session)).await.unwrap_or(group == session) {
            if Instant::now() >= end {
                let _ = kill_process_group(group, Signal::KILL);
                break;
            }
            sleep(GRACE / 20).await;
        }
    }
    drop(shell);
    drop(place);
}
