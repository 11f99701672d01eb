//! The file of the contexts: in the user's configuration directory, for this user alone, replaced as a whole.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Context;
use crate::error::Failure;

/// All services that this user signed in to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contexts {
    /// The one that calls without `--context` use.
    #[serde(default)]
    pub current: Option<String>,
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

/// Where the contexts are.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

/// Nobody else changes the contexts until it is dropped.
pub struct Locked<'a> {
    store: &'a Store,
    _lock: File,
}

impl Store {
    /// In the directory where this system keeps a user's settings.
    pub fn of_user() -> Result<Self, Failure> {
        let directory = configuration_directory(|name| env::var_os(name).map(PathBuf::from), env::home_dir());
        let directory = directory.ok_or_else(|| Failure::failed("this user has no home directory: set HOME"))?;
        Ok(Self { directory: directory.join("signalbox") })
    }

    #[cfg(test)]
    pub fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.join("contexts.json")
    }

    /// The contexts; none where there is no file yet.
    pub fn read(&self) -> Result<Contexts, Failure> {
        let path = self.path();
        let fault = |error: String| Failure::failed(format!("cannot read {}: {error}", path.display()));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contexts::default()),
            Err(error) => return Err(fault(error.to_string())),
        };
        expect_private(&file).map_err(fault)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| fault(error.to_string()))?;
        // The parser's words could repeat a token, its place cannot.
        serde_json::from_slice(&text)
            .map_err(|error| fault(format!("line {} is not as signalboxctl writes it", error.line())))
    }

    /// Waits until no other process changes the contexts.
    pub async fn lock(&self) -> Result<Locked<'_>, Failure> {
        let directory = self.directory.clone();
        let locked = tokio::task::spawn_blocking(move || lock(&directory)).await;
        let fault = |error: String| Failure::failed(format!("cannot lock {}: {error}", self.directory.display()));
        match locked {
            Ok(Ok(lock)) => Ok(Locked { store: self, _lock: lock }),
            Ok(Err(error)) => Err(fault(error.to_string())),
            Err(ended) => Err(fault(ended.to_string())),
        }
    }
}

impl Locked<'_> {
    /// The contexts as they are now.
    pub fn read(&self) -> Result<Contexts, Failure> {
        self.store.read()
    }

    /// Replaces the file: a reader sees the old contexts or the new ones, also after a power cut.
    pub fn write(&self, contexts: &Contexts) -> Result<(), Failure> {
        let path = self.store.path();
        let replace = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.store.directory)?;
            serde_json::to_writer_pretty(&mut file, contexts)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)
        };
        let written: io::Result<File> = replace();
        written.map(|_| ()).map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    }
}

/// The lock is a file of its own, because the contexts' is replaced.
fn lock(directory: &Path) -> io::Result<File> {
    create_private(directory)?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(directory.join("contexts.lock"))?;
    file.lock()?;
    Ok(file)
}

#[cfg(unix)]
fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> io::Result<()> {
    // A profile on Windows is its user's alone.
    fs::create_dir_all(directory)
}

/// Refuses a file that other users can read.
#[cfg(unix)]
pub fn expect_private(file: &File) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let mode = metadata.permissions().mode() & 0o7777;
    // The mode of a pipe means nothing.
    if metadata.is_file() && mode & 0o077 != 0 {
        return Err(format!("other users can read it (mode {mode:04o}): `chmod 600` it, and replace what is in it"));
    }
    Ok(())
}

#[cfg(not(unix))]
pub fn expect_private(_: &File) -> Result<(), String> {
    Ok(())
}

/// `XDG_CONFIG_HOME` wherever it is set, then what the system calls it.
fn configuration_directory(variable: impl Fn(&str) -> Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|path| path.is_absolute());
    let home = home.filter(|path| !path.as_os_str().is_empty());
    let of_system = if cfg!(windows) {
        set("APPDATA")
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library/Application Support"))
    } else {
        home.map(|home| home.join(".config"))
    };
    set("XDG_CONFIG_HOME").or(of_system)
}

#[cfg(test)]
mod tests {
    use super::super::{Credential, Token};
    use super::*;

    fn contexts() -> Contexts {
        let credential = Credential::Token { token: Token::parse("sbt_secret").unwrap() };
        let context = Context { url: "https://a.example".parse().unwrap(), ca_file: None, credential };
        Contexts { current: Some("a".to_owned()), contexts: [("a".to_owned(), context)].into() }
    }

    #[tokio::test]
    async fn what_is_written_is_read_again_and_private() {
        let room = tempfile::tempdir().unwrap();
        let store = Store::at(&room.path().join("deep/signalbox"));
        assert_eq!(store.read().unwrap(), Contexts::default());

        store.lock().await.unwrap().write(&contexts()).unwrap();

        assert_eq!(store.read().unwrap(), contexts());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&store.path()), 0o600);
            assert_eq!(mode(store.path().parent().unwrap()), 0o700);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let room = tempfile::tempdir().unwrap();
        let store = Store::at(room.path());
        store.lock().await.unwrap().write(&contexts()).unwrap();
        fs::set_permissions(store.path(), fs::Permissions::from_mode(0o644)).unwrap();

        let refusal = store.read().unwrap_err().to_string();

        assert!(refusal.contains("mode 0644") && refusal.contains("chmod 600"), "{refusal}");
    }

    #[test]
    fn a_damaged_file_is_named_without_its_text() {
        let room = tempfile::tempdir().unwrap();
        let store = Store::at(room.path());
        let mut file = tempfile::NamedTempFile::new_in(room.path()).unwrap();
        file.write_all(b"{\"current\":\n sbt_secret").unwrap();
        file.persist(store.path()).unwrap();

        let refusal = store.read().unwrap_err().to_string();

        assert!(refusal.contains("line 2") && !refusal.contains("secret"), "{refusal}");
    }

    #[test]
    fn settings_are_where_the_user_wants_them() {
        let home = || Some(PathBuf::from("/root"));

        let wanted = configuration_directory(|name| (name == "XDG_CONFIG_HOME").then(|| "/x".into()), home());
        let relative = configuration_directory(|name| (name == "XDG_CONFIG_HOME").then(|| "x".into()), home());

        assert_eq!(wanted.unwrap(), Path::new("/x"));
        assert_ne!(relative.unwrap(), Path::new("x"));
    }
}
