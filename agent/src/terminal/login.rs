//! The user that the agent runs as, and how their shell is started.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::getuid;

use crate::process::names_to_leave_out;

/// A passwd file of a machine with tens of thousands of users.
const MAX_BYTES: u64 = 4 << 20;
/// The terminal type on the other side.
const TERM: &str = "xterm-256color";
/// Without a locale every character beyond ASCII would be garbled.
const LANG: &str = "C.UTF-8";

/// An account, as in passwd(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    name: String,
    home: PathBuf,
    shell: PathBuf,
}

impl Login {
    /// The account of the agent's user. A user without an entry has the environment's shell.
    pub fn current(etc: &Path) -> Self {
        let is_short = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() <= MAX_BYTES);
        let path = etc.join("passwd");
        let text = if is_short(&path) { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let uid = getuid().as_raw();
        let listed = parse(&String::from_utf8_lossy(&text), uid);
        let login = listed.unwrap_or_else(|| Self {
            name: uid.to_string(),
            home: variable("HOME").unwrap_or_else(|| "/".into()).into(),
            shell: variable("SHELL").unwrap_or_default().into(),
        });
        Self { shell: usable(login.shell), home: enterable(login.home), ..login }
    }

    /// The shell as a login shell, without the agent's own settings.
    pub fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.shell);
        names_to_leave_out().for_each(|name| _ = command.env_remove(name));
        command.current_dir(&self.home).env("HOME", &self.home).env("SHELL", &self.shell);
        command.env("USER", &self.name).env("LOGNAME", &self.name).env("TERM", TERM);
        if variable("LANG").is_none() && variable("LC_ALL").is_none() {
            command.env("LANG", LANG);
        }
        command
    }

    /// The name of a login shell: that of the shell after a hyphen.
    pub fn arg0(&self) -> OsString {
        let mut arg0 = OsString::from("-");
        arg0.push(self.shell.file_name().unwrap_or_default());
        arg0
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn parse(passwd: &str, uid: u32) -> Option<Login> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, number, _, _, home, shell] = fields[..] else { return None };
        (number.parse() == Ok(uid)).then(|| Login { name: name.to_owned(), home: home.into(), shell: shell.into() })
    })
}

/// An account for services has a shell that refuses logins. The machine's owner has decided otherwise for this one.
fn usable(shell: PathBuf) -> PathBuf {
    let lets_nobody_in = matches!(shell.file_name().and_then(|name| name.to_str()), None | Some("nologin" | "false"));
    if lets_nobody_in || access(&shell, Access::EXEC_OK).is_err() { "/bin/sh".into() } else { shell }
}

fn enterable(home: PathBuf) -> PathBuf {
    if home.is_dir() && access(&home, Access::EXEC_OK).is_ok() { home } else { "/".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\nbroken:x:7\nada:x:7:7:Ada,,,:/srv/ada:/bin/zsh\n";

    #[test]
    fn an_account_says_home_and_shell() {
        let ada = Login { name: "ada".into(), home: "/srv/ada".into(), shell: "/bin/zsh".into() };

        assert_eq!(parse(PASSWD, 7), Some(ada));
        assert_eq!(parse(PASSWD, 8), None);
    }

    #[test]
    fn a_shell_that_refuses_logins_is_replaced() {
        for shell in ["/usr/sbin/nologin", "/bin/false", "", "/no/such/shell"] {
            assert_eq!(usable(shell.into()), Path::new("/bin/sh"), "{shell}");
        }
        assert_eq!(usable("/bin/cat".into()), Path::new("/bin/cat"));
        assert_eq!(enterable("/no/such/home".into()), Path::new("/"));
    }

    #[test]
    fn the_name_of_a_login_shell_begins_with_a_hyphen() {
        assert_eq!(parse(PASSWD, 0).unwrap().arg0(), "-bash");
    }
}
