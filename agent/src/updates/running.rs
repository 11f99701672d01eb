//! Which build this process is. The program that starts a build tells it so in its environment.

use rustix::process::getppid;

use super::version::{self, Version};

/// Names the role and the version of a build that was started in place of the installed one, such as `taken 1.4.0`, and the process
/// that tries it, as in `trial 1.4.0 4711`. It is no setting: the agent's own programs alone set it, and it is not passed to commands.
pub const VARIABLE: &str = "SIGNALBOX_BUILD";

/// Why this build runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// It is the program that the machine's owner has installed.
    #[default]
    Installed,
    /// It replaced the installed one, after a trial.
    Taken,
    /// It is being tried by another one, which waits.
    Trial,
}

/// A build and its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub role: Role,
    /// The version that it was released as, which its starter has verified.
    pub version: Version,
    /// The process that tries it.
    pub tried_by: Option<u32>,
}

impl Default for Running {
    fn default() -> Self {
        Self { role: Role::Installed, version: version::of_program(), tried_by: None }
    }
}

impl Running {
    /// What the starter of this process said. Without a word of it, the process is the installed program.
    pub fn of_environment() -> Self {
        std::env::var(VARIABLE).ok().and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let (role, version, tried_by) = match words.as_slice() {
            ["taken", version] => (Role::Taken, version, None),
            ["trial", version, pid] => (Role::Trial, version, Some(pid.parse().ok()?)),
            _ => return None,
        };
        Some(Self { role, version: version.parse().ok()?, tried_by })
    }

    /// The value of [`VARIABLE`] for a build that takes the place of this process.
    pub fn taken(version: &Version) -> String {
        format!("taken {version}")
    }

    /// The value of [`VARIABLE`] for a build that this process tries.
    pub fn trial(version: &Version) -> String {
        format!("trial {version} {}", std::process::id())
    }

    /// Whether it is on trial, and the process that tries it has ended.
    pub fn is_orphaned(&self) -> bool {
        let parent = getppid().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
        self.tried_by.is_some_and(|tried_by| parent != Some(tried_by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_learns_what_it_is() {
        let version: Version = "1.4.0-rc.1".parse().unwrap();

        let taken = Running { role: Role::Taken, version: version.clone(), tried_by: None };
        let trial = Running { role: Role::Trial, version: version.clone(), tried_by: Some(std::process::id()) };
        assert_eq!(Running::parse(&Running::taken(&version)), Some(taken));
        assert_eq!(Running::parse(&Running::trial(&version)), Some(trial));
        for text in ["", "taken", "installed 1.4.0", "taken 1", "taken 1.4.0 1", "trial 1.4.0", "trial 1.4.0 x"] {
            assert_eq!(Running::parse(text), None, "{text}");
        }
    }
}
