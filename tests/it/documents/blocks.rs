//! The fenced blocks of the documents.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands between two fences.
pub struct Block {
    /// The document, from the root of the repository.
    pub path: String,
    /// Of the opening fence.
    pub line: usize,
    /// The word behind the opening fence.
    pub language: String,
    /// Without the blanks that the fence has before it.
    pub text: String,
}

impl Block {
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of the repository.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every document for people, from the root of the repository.
pub fn documents() -> Vec<String> {
    let mut paths = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    find(Path::new("docs"), &mut paths);
    let mut names: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn find(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(directory)).unwrap() {
        let entry = entry.unwrap();
        let path = directory.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            find(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

/// Every block of every document.
pub fn all() -> Vec<Block> {
    documents().iter().flat_map(|path| blocks_of(path, &read(path))).collect()
}

/// The shell blocks of one document, in order.
pub fn shell_blocks(path: &str) -> Vec<String> {
    let blocks = blocks_of(path, &read(path)).into_iter().filter(|block| block.language == "sh");
    blocks.map(|block| block.text).collect()
}

pub fn blocks_of(path: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(Block, usize)> = None;
    for (index, line) in text.lines().enumerate() {
        let body = line.trim_start();
        let Some((mut block, indent)) = open.take() else {
            if let Some(language) = body.strip_prefix("```") {
                let (path, language) = (path.to_owned(), language.trim().to_owned());
                open = Some((Block { path, line: index + 1, language, text: String::new() }, line.len() - body.len()));
            }
            continue;
        };
        if body == "```" {
            blocks.push(block);
            continue;
        }
        block.text.push_str(line.get(indent..).unwrap_or_default());
        block.text.push('\n');
        open = Some((block, indent));
    }
    assert!(open.is_none(), "{path}: a block has no end");
    blocks
}

/// The document without its blocks, for what stands in its sentences and tables.
pub fn prose_of(text: &str) -> String {
    let mut is_inside = false;
    let mut prose = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !is_fence && !is_inside {
            prose.push_str(line);
            prose.push('\n');
        }
        is_inside ^= is_fence;
    }
    prose
}

#[test]
fn a_block_in_a_list_loses_the_indentation_of_its_fence() {
    let text = "1. Do:\n\n   ```sh\n   one\n     two\n\n   ```\n\n```toml\nthree\n```\n";

    let blocks = blocks_of("a.md", text);

    let found: Vec<(usize, &str, &str)> =
        blocks.iter().map(|block| (block.line, block.language.as_str(), block.text.as_str())).collect();
    assert_eq!(found, [(3, "sh", "one\n  two\n\n"), (9, "toml", "three\n")]);
    assert_eq!(prose_of(text), "1. Do:\n\n\n");
}
