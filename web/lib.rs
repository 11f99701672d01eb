//! The files of the web interface and of the help, built by `build.rs` and compiled in: no request leaves the service, and
//! no file lies beside it.

/// A file, as it is and compressed.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path below the root, without a slash in front: `assets/index-4f1c.js`.
    pub path: &'static str,
    pub bytes: &'static [u8],
    pub brotli: Option<&'static [u8]>,
    pub gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The page that every address of the interface gets.
pub const INDEX: &str = "index.html";

/// The page of the help for addresses below `/help` that nobody knows.
pub const UNKNOWN_HELP: &str = "help-unknown.html";

/// The file at a path.
pub fn asset(path: &str) -> Option<&'static Asset> {
    let index = ASSETS.binary_search_by_key(&path, |asset| asset.path).ok()?;
    ASSETS.get(index)
}

impl Asset {
    /// Whether its name changes with what is in it, so that it may be kept for ever.
    pub fn is_immutable(&self) -> bool {
        self.path.starts_with("assets/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_is_found_by_its_path() {
        let index = asset(INDEX).expect("there is a page");

        assert!(index.bytes.starts_with(b"<!doctype html>"));
        assert!(index.brotli.is_some_and(|bytes| bytes.len() < index.bytes.len()));
        assert!(ASSETS.iter().all(|each| asset(each.path).is_some_and(|found| std::ptr::eq(found, each))));
        assert!(asset("assets/../index.html").is_none());
        assert!([UNKNOWN_HELP, "help.html", "help/guides/agents.html"].iter().all(|page| asset(page).is_some()));
    }
}
