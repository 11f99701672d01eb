//! The files of the web interface and of the help, built by `build.rs` and compiled in: no request leaves the service, and
//! no file lies beside it.

use std::io::{self, Read};
use std::sync::OnceLock;

use flate2::read::GzDecoder;

/// A file.
#[derive(Debug)]
pub struct Asset {
    /// Its path below the root, without a slash in front: `assets/index-4f1c.js`.
    pub path: &'static str,
    pub content: Content,
}

/// The content of a file, in the forms in which it is compiled in.
#[derive(Debug)]
pub enum Content {
    /// One that compression would not make smaller, such as a picture.
    Plain(&'static [u8]),
    /// All others: the few clients that accept neither get what gzip unpacks, so that the program does not hold it a third time.
    Compressed {
        brotli: &'static [u8],
        gzip: &'static [u8],
        /// Unpacked once and for everybody: clients that read slowly, however many, hold no copies.
        plain: OnceLock<Vec<u8>>,
    },
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

    /// The content as it is. Fails if it was built wrong.
    pub fn plain(&'static self) -> io::Result<&'static [u8]> {
        match &self.content {
            Content::Plain(bytes) => Ok(bytes),
            Content::Compressed { gzip, plain, .. } => {
                if let Some(bytes) = plain.get() {
                    return Ok(bytes);
                }
                let mut bytes = Vec::new();
                GzDecoder::new(*gzip).read_to_end(&mut bytes)?;
                Ok(plain.get_or_init(|| bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_is_found_by_its_path() {
        let index = asset(INDEX).expect("there is a page");

        let plain = index.plain().expect("it can be unpacked");
        assert!(plain.starts_with(b"<!doctype html>"));
        assert!(std::ptr::eq(plain, index.plain().expect("it is unpacked")), "one copy for all");
        assert!(matches!(index.content, Content::Compressed { brotli, .. } if brotli.len() < plain.len()));
        assert!(ASSETS.iter().all(|each| each.plain().is_ok_and(|bytes| !bytes.is_empty())));
        assert!(ASSETS.iter().all(|each| asset(each.path).is_some_and(|found| std::ptr::eq(found, each))));
        assert!(asset("assets/../index.html").is_none());
        assert!([UNKNOWN_HELP, "help.html", "help/guides/agents.html"].iter().all(|page| asset(page).is_some()));
    }
}
