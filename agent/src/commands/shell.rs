//! One command while it runs: `/bin/sh -c` in a process group of its own.
//!
//! It ends when the shell ends. The agent waits a moment for output in transit, but no longer, because what the command started
//! in the background may hold the pipes open for ever; from then on it writes to a closed pipe. It is not ended, because people
//! start daemons that way. A command that times out or is cancelled ends with its whole process group; only processes with a
//! session of their own have left that group.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use signalbox_protocol::agent::{CommandStatus, Stream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::pipes::Pipes;
use crate::process::{Group, Identity, names_to_leave_out};

/// The time that a command has to end on its own.
pub const GRACE: Duration = Duration::from_secs(2);
/// For output that the shell wrote just before it ended.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// When memory runs out, the kernel ends a command rather than the agent (0: as likely as any other program, 1000: first of
/// all).
const OOM_SCORE: &str = "500";
/// The code of timeout(1).
const TIMED_OUT_CODE: i32 = 124;
const KILLED_CODE: i32 = 128 + 9;

#[derive(Debug)]
pub struct Shell {
    group: Group,
    pipes: Pipes,
    proc: PathBuf,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub status: CommandStatus,
    pub exit_code: i32,
}

/// What happened first.
enum First {
    Exited,
    TimedOut,
    /// With the time that it has to end on its own.
    Cancelled(Duration),
}

/// What a command starts.
#[derive(Debug, Clone, Copy)]
pub enum Program<'a> {
    /// A text for the shell.
    Shell(&'a str),
    /// A program and its arguments, which nothing interprets.
    Words(&'a [String]),
}

impl Program<'_> {
    fn command(self) -> io::Result<Command> {
        match self {
            Self::Shell(text) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "--", text]);
                Ok(shell)
            }
            Self::Words(words) => {
                let (program, arguments) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
                let mut command = Command::new(program);
                command.args(arguments);
                Ok(command)
            }
        }
    }
}

impl Shell {
    /// Starts a command.
    pub fn start(program: Program<'_>, input: Option<String>, proc: &Path) -> io::Result<Self> {
        let mut shell = program.command()?;
        // A group and not a session, because that would need a fork of the whole agent instead of a vfork.
        shell.process_group(0).current_dir("/");
        // An empty input and none are the same to signatures, so no command can tell them apart.
        let has_input = input.as_ref().is_some_and(|text| !text.is_empty());
        shell.stdin(if has_input { Stdio::piped() } else { Stdio::null() });
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        names_to_leave_out().for_each(|name| _ = shell.env_remove(name));
        let mut group = Group::start(|| shell.spawn())?;
        // Some kernels do not permit it; the command runs anyway.
        let _ = std::fs::write(proc.join(group.id().to_string()).join("oom_score_adj"), OOM_SCORE);
        let child = group.child().ok_or(io::ErrorKind::NotFound)?;
        let pipes = Pipes::of(child, input)?;
        Ok(Self { group, pipes, proc: proc.to_owned() })
    }

    /// The shell's process, so that a later run of the agent recognises it.
    pub fn identity(&self) -> Option<Identity> {
        self.group.identity(&self.proc)
    }

    /// Runs until the command has ended, and passes each piece of output to `keep`. `cancel` carries the time that the command
    /// then has to end on its own.
    pub async fn run(
        self,
        limit: Duration,
        cancel: oneshot::Receiver<Duration>,
        mut keep: impl FnMut(Stream, &str),
    ) -> End {
        let Self { mut group, mut pipes, proc } = self;
        let first = pipes.flow_until(first(&mut group, limit, cancel), &mut keep).await;
        let grace = match first {
            First::Exited => None,
            First::TimedOut => Some(GRACE),
            First::Cancelled(grace) => Some(grace),
        };
        if let Some(grace) = grace {
            pipes.flow_until(group.terminate(&proc, grace), &mut keep).await;
        }
        // Reads the rest of the pipes. (Elapsed: a process in the background holds them open.)
        let _ = timeout(LAST_OUTPUT, pipes.drain(&mut keep)).await;
        pipes.finish(&mut keep);
        let exit_code = group.end().map_or(KILLED_CODE, exit_code);
        match first {
            First::Exited if exit_code == 0 => End { status: CommandStatus::Succeeded, exit_code },
            First::Exited => End { status: CommandStatus::Failed, exit_code },
            First::TimedOut => End { status: CommandStatus::TimedOut, exit_code: TIMED_OUT_CODE },
            First::Cancelled(_) => End { status: CommandStatus::Cancelled, exit_code },
        }
    }
}

async fn first(group: &mut Group, limit: Duration, cancel: oneshot::Receiver<Duration>) -> First {
    let cancelled = async {
        match cancel.await {
            Ok(grace) => grace,
            // Nobody can cancel it any more.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = group.exited() => First::Exited,
        grace = cancelled => First::Cancelled(grace),
        () = sleep(limit) => First::TimedOut,
    }
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(KILLED_CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, exit code, and the output of both streams.
    async fn run(command: &str, input: Option<&str>, limit: Duration) -> (End, String, String) {
        let (_never, cancel) = oneshot::channel();
        let shell = Shell::start(Program::Shell(command), input.map(str::to_owned), Path::new("/proc")).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        let keep = |stream: Stream, text: &str| match stream {
            Stream::Stdout => out.push_str(text),
            Stream::Stderr => err.push_str(text),
        };
        let end = shell.run(limit, cancel, keep).await;
        (end, out, err)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn exit_codes_and_signals_are_reported() {
        let cases = [
            ("true", CommandStatus::Succeeded, 0),
            ("exit 3", CommandStatus::Failed, 3),
            ("kill -9 $$", CommandStatus::Failed, 137),
            ("kill -TERM $$", CommandStatus::Failed, 143),
            ("no-such-program", CommandStatus::Failed, 127),
        ];
        for (command, status, exit_code) in cases {
            assert_eq!(run(command, None, LONG).await.0, End { status, exit_code }, "{command}");
        }
    }

    #[tokio::test]
    async fn input_larger_than_any_pipe_is_read_while_output_is_written() {
        let input = "0123456789abcde\n".repeat(40_000);

        let (end, out, _) = run("cat", Some(&input), LONG).await;

        assert_eq!((end.exit_code, out.len()), (0, input.len()));
        assert_eq!(run("cat", None, LONG).await.1, "");
    }

    #[tokio::test]
    async fn unread_input_blocks_nothing() {
        let input = "x".repeat(1_000_000);

        assert_eq!(run("exec <&-; echo done", Some(&input), LONG).await.1, "done\n");
        assert_eq!(run("exit 4", Some(&input), LONG).await.0.exit_code, 4);
    }

    #[tokio::test]
    async fn a_background_process_that_holds_the_pipes_open_is_not_waited_for() {
        let began = tokio::time::Instant::now();

        let (end, out, _) = run("sleep 100 & echo $!", None, LONG).await;

        assert_eq!(end.exit_code, 0);
        assert!(began.elapsed() < LONG);
        let pid = rustix::process::Pid::from_raw(out.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was left alone");
    }

    #[tokio::test]
    async fn a_command_in_the_root_knows_nothing_of_the_agent() {
        let (_, out, _) = run("pwd; env | grep -c SIGNALBOX; ls /proc/self/fd | tr '\n' ' '", None, LONG).await;

        // Whatever this process inherited and passes on.
        let listed = Command::new("ls").arg("/proc/self/fd").stdin(Stdio::null()).output().unwrap().stdout;
        let inherited = String::from_utf8(listed).unwrap().replace('\n', " ");
        assert_eq!(out, format!("/\n0\n{inherited}"));
    }

    #[tokio::test]
    async fn a_command_is_the_first_to_go_when_memory_runs_out() {
        // The score is set when the command already runs.
        let told = "until grep -q 500 /proc/self/oom_score_adj; do sleep 0.01; done; cat /proc/self/oom_score_adj";
        let (_, out, _) = run(told, None, LONG).await;

        assert_eq!(out, "500\n");
    }

    #[tokio::test]
    async fn a_flood_of_output_delays_no_timeout() {
        // Two seconds may be too short for the first of it, on a machine under load.
        for seconds in [2, 10, 30] {
            let (began, mut bytes) = (tokio::time::Instant::now(), 0);
            let (_never, cancel) = oneshot::channel();

            let shell = Shell::start(Program::Shell("yes"), None, Path::new("/proc")).unwrap();
            let end = shell.run(Duration::from_secs(seconds), cancel, |_, text| bytes += text.len()).await;

            assert_eq!(end, End { status: CommandStatus::TimedOut, exit_code: 124 });
            assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
            if bytes > 100_000 {
                return;
            }
        }
        panic!("there was no flood");
    }
}
