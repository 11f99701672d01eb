//! Names of users, from `/etc/passwd` (passwd(5)). It does not know those of a directory service.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use signalbox_protocol::sample::MAX_NAME_BYTES;

/// Some twenty thousand users. The rest of a larger file is ignored.
const MAX_BYTES: u64 = 1 << 20;

pub struct Users {
    path: PathBuf,
    /// Identifies the file that was read: modification time with its nanoseconds, file number, size.
    version: Option<(i64, i64, u64, u64)>,
    names: HashMap<u32, Box<str>>,
}

impl Users {
    pub fn new(etc: &Path) -> Self {
        Self { path: etc.join("passwd"), version: None, names: HashMap::new() }
    }

    /// Reads the file if it has changed. Without a file no user has a name.
    pub fn refresh(&mut self) {
        let version = fs::metadata(&self.path).ok();
        let version = version.map(|file| (file.mtime(), file.mtime_nsec(), file.ino(), file.size()));
        if version != self.version || version.is_none() {
            self.version = version;
            self.names = read(&self.path).unwrap_or_default();
        }
    }

    /// The user's name, or the number where there is none.
    pub fn name(&self, uid: u32) -> String {
        self.names.get(&uid).map_or_else(|| uid.to_string(), |name| name.to_string())
    }
}

fn read(path: &Path) -> io::Result<HashMap<u32, Box<str>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

fn parse(text: &str) -> HashMap<u32, Box<str>> {
    let mut names = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        let (Some(name), Some(uid)) = (fields.next(), fields.nth(1).and_then(|uid| uid.parse().ok())) else { continue };
        if !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains('\0') {
            // Of several names for one number the first counts, as for every other program.
            names.entry(uid).or_insert_with(|| name.into());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> (tempfile::TempDir, Users) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("passwd"), text).unwrap();
        let mut users = Users::new(dir.path());
        users.refresh();
        (dir, users)
    }

    #[test]
    fn users_have_the_first_name_of_their_number() {
        let (_dir, users) = users("root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\nwww-data:x:33:33::/var/www:\n");

        assert_eq!([0, 33, 1000].map(|uid| users.name(uid)), ["root", "www-data", "1000"]);
    }

    #[test]
    fn lines_without_a_user_are_skipped() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let (_dir, users) =
            users(&format!("\n# :x\n:x:1:1::/:\nbin:x:two:2::/:\n+::::::\n{long}:x:3:3::/:\nada:x:4:4::/:"));

        assert_eq!([1, 2, 3, 4].map(|uid| users.name(uid)), ["1", "2", "3", "ada"]);
    }

    #[test]
    fn a_changed_file_is_read_again_and_an_unchanged_one_is_not() {
        let (dir, mut users) = users("ada:x:1000:1000::/:\n");
        users.names.insert(7, "from memory".into());

        users.refresh();
        let unchanged = users.name(7);
        fs::write(dir.path().join("passwd"), "ada.lovelace:x:1000:1000::/:\n").unwrap();
        users.refresh();
        let changed = [users.name(1000), users.name(7)];
        fs::remove_file(dir.path().join("passwd")).unwrap();
        users.refresh();

        assert_eq!(unchanged, "from memory");
        assert_eq!(changed, ["ada.lovelace", "7"]);
        assert_eq!(users.name(1000), "1000");
    }

    #[test]
    fn a_file_without_end_is_read_to_its_bound() {
        let line = format!("{}:x:1:1::/:\n", "y".repeat(200));
        let (_dir, users) = users(&(line.repeat(MAX_BYTES as usize / line.len() + 1) + "late:x:9:9::/:\n"));

        assert_eq!((users.name(9), users.names.len()), ("9".to_owned(), 1));
    }
}
