//! A source file as the rules see it: its text, its code without comments and strings, and the paths in the code. A small
//! scanner instead of a parser: it only has to understand the output of rustfmt, not all of Rust.

use std::path::Path;

/// One file, with `#[cfg(test)]` modules blanked wherever only the product counts.
pub struct Source {
    /// Relative to the repository, with forward slashes.
    pub path: String,
    /// Everything, line by line.
    pub text: String,
    /// The text without its test modules.
    pub product_text: String,
    /// The code: comments, strings and characters are spaces.
    pub code: String,
    /// The code without its test modules.
    pub product_code: String,
}

/// A path as the code names it, groups expanded and `super` resolved: `crate::store::users`.
#[derive(Debug, PartialEq)]
pub struct Named {
    pub line: usize,
    pub path: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let code = without_comments_and_strings(text);
        let (product_text, product_code) = without_test_modules(text, &code);
        Self { path: path.to_owned(), text: text.to_owned(), product_text, code, product_code }
    }

    /// Lines that are not tests.
    pub fn product_lines(&self) -> usize {
        let tests = self.code.lines().zip(self.product_code.lines()).filter(|(all, product)| all != product).count();
        self.text.lines().count() - tests
    }

    /// Every path that the product's code names.
    pub fn paths(&self) -> Vec<Named> {
        let here = module_path(&self.path);
        let tokens = tokens(&self.product_code);
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at].1 == "::" && at > 0 && is_word(tokens[at - 1].1) {
                // The rest of something like `Vec::<u8>::new`: its beginning has been named.
                at += 1;
            } else if is_word(tokens[at].1) {
                at = read_path(&tokens, at, &here, String::new(), &mut found);
            } else {
                at += 1;
            }
        }
        found
    }
}

/// Whether the repository has this directory.
pub fn exists(root: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(root).is_dir()
}

/// All `.rs` files under a directory of the repository, in order of their paths.
pub fn under(root: &str) -> Vec<Source> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    walk(&repository.join(root), &mut files);
    files.sort();
    files
        .iter()
        .map(|file| {
            let name = file.strip_prefix(repository).unwrap().to_str().unwrap().replace('\\', "/");
            Source::new(&name, &std::fs::read_to_string(file).unwrap())
        })
        .collect()
}

fn walk(directory: &Path, files: &mut Vec<std::path::PathBuf>) {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// `src/alerts/rule.rs` is `crate::alerts::rule`; `mod.rs`, `lib.rs` and `main.rs` are their directory.
fn module_path(path: &str) -> Vec<String> {
    let inside = path.split_once("src/").map_or(path, |(_, inside)| inside);
    let names = inside.trim_end_matches(".rs").split('/').filter(|name| !["mod", "lib", "main"].contains(name));
    std::iter::once("crate").chain(names).map(str::to_owned).collect()
}

/// Reads the path that starts at `at`, adds it (each member of a group on its own), and says where it ends.
fn read_path(
    tokens: &[(usize, &str)],
    mut at: usize,
    here: &[String],
    prefix: String,
    found: &mut Vec<Named>,
) -> usize {
    let line = tokens[at].0;
    let mut path = prefix;
    loop {
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(tokens[at].1);
        let next = |ahead: usize| tokens.get(at + ahead).map_or("", |token| token.1);
        if next(1) != "::" {
            break;
        }
        if next(2) == "{" {
            return read_group(tokens, at + 3, here, &path, found);
        }
        if !is_word(next(2)) {
            break;
        }
        at += 2;
    }
    found.push(Named { line, path: resolve(&path, here) });
    at + 1
}

fn read_group(tokens: &[(usize, &str)], mut at: usize, here: &[String], prefix: &str, found: &mut Vec<Named>) -> usize {
    while let Some((_, token)) = tokens.get(at) {
        match *token {
            "}" => return at + 1,
            word if is_word(word) => at = read_path(tokens, at, here, prefix.to_owned(), found),
            _ => at += 1,
        }
    }
    at
}

/// `super::http` said in `src/fleet.rs` is `crate::http`.
fn resolve(path: &str, here: &[String]) -> String {
    let mut base = here.to_vec();
    let mut relative = false;
    let mut rest = path;
    while let Some((first, tail)) = rest.split_once("::") {
        match first {
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        relative = true;
        rest = tail;
    }
    if relative { format!("{}::{rest}", base.join("::")) } else { path.to_owned() }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphanumeric() || first == '_')
}

/// Words, `::` and single other characters, each with its line.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let length = if is_word(rest) {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                tokens.push((index + 1, &rest[..length]));
            }
            rest = &rest[length..];
        }
    }
    tokens
}

/// Overwrites a range with spaces and keeps its lines.
fn blank(text: &mut String, from: usize, to: usize) {
    let spaces = text[from..to].chars().map(|c| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) });
    let spaces: String = spaces.collect();
    text.replace_range(from..to, &spaces);
}

fn without_comments_and_strings(text: &str) -> String {
    let mut code = text.to_owned();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = uncoded(rest, text[..at].chars().next_back());
        if length > 0 {
            blank(&mut code, at, at + length);
        }
        at += length.max(rest.chars().next().map_or(1, char::len_utf8));
    }
    code
}

/// How many bytes at the beginning are a comment, a string or a character.
fn uncoded(rest: &str, before: Option<char>) -> usize {
    let word_before = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    if !word_before && let Some(raw) = rest.trim_start_matches('b').strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let start = rest.len() - raw.len() + hashes + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            return rest[start..].find(&close).map_or(rest.len(), |end| start + end + close.len());
        }
    }
    // A character, not a lifetime: escaped, or closed right after it.
    let mut ahead = rest.chars();
    if ahead.next() == Some('\'') && (ahead.next() == Some('\\') || ahead.next() == Some('\'')) {
        return quoted(rest, '\'');
    }
    0
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Text and code without the modules marked `#[cfg(test)]`. Braces are counted in the code, where each has its partner.
fn without_test_modules(text: &str, code: &str) -> (String, String) {
    let (mut product_text, mut product_code) = (text.to_owned(), code.to_owned());
    for (start, mark) in code.match_indices("#[cfg(test)]") {
        let after = &code[start + mark.len()..];
        if !after.trim_start().starts_with("mod ") {
            continue;
        }
        let end = start + mark.len() + module_length(after);
        blank(&mut product_text, start, end);
        blank(&mut product_code, start, end);
    }
    (product_text, product_code)
}

fn module_length(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}
