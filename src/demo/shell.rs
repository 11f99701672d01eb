//! A small shell that answers for a simulated server. Nothing runs: every answer is text that follows from the server and the
//! time. Pure.

mod programs;
mod words;

use super::cast::Machine;
use super::course::Course;
use words::{Joint, Word};

/// The longest output, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// Where a command runs.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    pub course: Course,
    pub machine: &'a Machine,
    pub at_ms: i64,
}

/// What a command wrote, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: i32,
    /// How long it takes, in milliseconds.
    pub takes_ms: u64,
}

impl Answer {
    fn text(stdout: impl Into<String>) -> Self {
        Self { stdout: stdout.into(), ..Self::default() }
    }

    fn failed(exit_code: i32, stderr: impl Into<String>) -> Self {
        Self { stderr: stderr.into(), exit_code, ..Self::default() }
    }
}

/// Answers a line as `/bin/sh -c` would.
pub fn run(host: Host<'_>, line: &str) -> Answer {
    let steps = match words::parse(line) {
        Ok(steps) => steps,
        Err(problem) => return Answer::failed(2, format!("sh: 1: {problem}\n")),
    };
    let mut all = Answer::default();
    for step in steps {
        let is_due = match step.joint {
            Joint::Always => true,
            Joint::IfSucceeded => all.exit_code == 0,
            Joint::IfFailed => all.exit_code != 0,
        };
        if !is_due {
            continue;
        }
        let Answer { stdout, stderr, exit_code, takes_ms } = pipeline(host, &step.commands);
        all.stdout.push_str(&stdout);
        all.stderr.push_str(&stderr);
        all.takes_ms = all.takes_ms.saturating_add(takes_ms);
        all.exit_code = exit_code;
        if step.commands.first().and_then(|words| words.first()).is_some_and(|word| word == "exit") {
            break;
        }
    }
    all.stdout.truncate(all.stdout.floor_char_boundary(MAX_OUTPUT));
    all
}

fn pipeline(host: Host<'_>, commands: &[Vec<Word>]) -> Answer {
    let mut last = Answer::default();
    for (place, command) in commands.iter().enumerate() {
        let input = (place > 0).then(|| std::mem::take(&mut last.stdout));
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let Answer { stdout, stderr, exit_code, takes_ms } = programs::run(host, &words, input.as_deref());
        (last.stdout, last.exit_code) = (stdout, exit_code);
        last.stderr.push_str(&stderr);
        last.takes_ms = last.takes_ms.max(takes_ms);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::super::cast::fleet;
    use super::*;

    fn answer(line: &str) -> Answer {
        let fleet = fleet(3);
        run(Host { course: Course { began_ms: 1_800_000_000_000 }, machine: &fleet[0], at_ms: 1_800_000_000_000 }, line)
    }

    #[test]
    fn an_unknown_program_is_not_found() {
        assert_eq!(answer("frobnicate --now"), Answer::failed(127, "sh: 1: frobnicate: not found\n"));
    }

    #[test]
    fn commands_are_joined_as_in_a_shell() {
        assert_eq!(answer("false && echo no; echo yes").stdout, "yes\n");
        assert_eq!(answer("false || echo 'it failed'").stdout, "it failed\n");
        assert_eq!(answer("false").exit_code, 1);
        assert_eq!(answer("exit 3; echo no"), Answer { exit_code: 3, ..Answer::default() });
        assert_eq!(answer("echo one | cat | wc -l").stdout, "1\n");
        assert_eq!(answer("").exit_code, 0);
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert_eq!(answer("echo 'one").exit_code, 2);
    }

    #[test]
    fn a_server_describes_itself() {
        assert_eq!(answer("hostname").stdout, "web-eu-1\n");
        assert!(answer("cat /etc/os-release").stdout.contains("ID=debian\n"));
        assert!(answer("df -h").stdout.contains("/dev/nvme0n1"));
        assert!(answer("free -m").stdout.starts_with("               total"));
        assert!(answer("uptime").stdout.contains("load average:"));
        assert!(answer("docker ps").stdout.contains("nginx:1.29-alpine"));
        assert!(answer("ps aux | head -n 3").stdout.lines().count() == 3);
        assert!(answer("systemctl status nginx").stdout.contains("active (running)"));
        assert_eq!(answer("systemctl is-active nothing").exit_code, 3);
        assert_eq!(answer("journalctl -n 4").stdout.lines().count(), 4);
        assert_eq!(answer("cat /no/such/file").exit_code, 1);
    }
}
