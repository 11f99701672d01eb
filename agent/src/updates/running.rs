//! Which build this process is. The program that starts a build tells it so in its environment.

use super::version::Version;

/// Names the role and the version of a build that was started in place of the installed one, such as `trial 1.4.0`. It is no
/// setting: the agent's own programs alone set it, and it is not passed to commands.
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

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Taken => "taken",
            Self::Trial => "trial",
        }
    }
}

/// A build and its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub role: Role,
    /// The version that it was released as, which its starter has verified.
    pub version: Version,
}

impl Default for Running {
    fn default() -> Self {
        Self { role: Role::Installed, version: Version::of_program() }
    }
}

impl Running {
    /// What the starter of this process said. Without a word of it, the process is the installed program.
    pub fn of_environment() -> Self {
        std::env::var(VARIABLE).ok().and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        let (name, version) = text.split_once(' ')?;
        let role = [Role::Taken, Role::Trial].into_iter().find(|role| role.name() == name)?;
        Some(Self { role, version: version.parse().ok()? })
    }

    /// The value of [`VARIABLE`].
    pub fn marker(role: Role, version: &Version) -> String {
        format!("{} {version}", role.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_learns_what_it_is() {
        let version: Version = "1.4.0-rc.1".parse().unwrap();

        for role in [Role::Taken, Role::Trial] {
            let told = Running::parse(&Running::marker(role, &version));
            assert_eq!(told, Some(Running { role, version: version.clone() }));
        }
        for text in ["", "taken", "installed 1.4.0", "taken 1", "trial 1.4.0 x"] {
            assert_eq!(Running::parse(text), None, "{text}");
        }
    }
}
