//! Reads shell blocks: which commands there are, with which words. As much of the shell's grammar as documents use.

/// A simple command.
#[derive(Debug, Default, PartialEq)]
pub struct Simple {
    /// `NAME=value` before the command, or alone.
    pub assignments: Vec<(String, String)>,
    /// Without quotes; variables as they are written.
    pub words: Vec<String>,
    /// The text of its here-document.
    pub here: Option<String>,
}

/// Words before a command that belong to the shell.
const RESERVED: [&str; 12] = ["!", "{", "}", "do", "done", "elif", "else", "fi", "if", "then", "until", "while"];

/// Every command of a script, those in `$(...)` included.
pub fn commands_of(script: &str) -> Vec<Simple> {
    let mut reader = Reader { rest: script, ..Reader::default() };
    reader.read();
    reader.commands
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    /// The word that is being read; none between words.
    word: Option<String>,
    command: Simple,
    commands: Vec<Simple>,
    /// Where a here-document begins with the next line: up to which line it goes.
    here: Option<&'a str>,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(next) = self.rest.chars().next() {
            let rest = &self.rest[next.len_utf8()..];
            self.rest = rest;
            match next {
                ' ' | '\t' => self.end_word(),
                '\\' => self.escape(),
                '\'' => {
                    let (quoted, after) = rest.split_once('\'').expect("the end of a quote");
                    self.add(quoted);
                    self.rest = after;
                }
                '"' => self.quote(),
                '$' if rest.starts_with('(') => self.substitute(),
                '#' if self.word.is_none() => self.rest = &rest[rest.find('\n').unwrap_or(rest.len())..],
                '\n' => {
                    self.end_command();
                    self.take_here();
                }
                ';' | '|' | '&' | '(' | ')' => self.end_command(),
                '<' | '>' => self.redirect(),
                other => self.add(other.encode_utf8(&mut [0; 4])),
            }
        }
        self.end_command();
    }

    fn add(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn escape(&mut self) {
        let Some(escaped) = self.rest.chars().next() else { return };
        self.rest = &self.rest[escaped.len_utf8()..];
        if escaped != '\n' {
            self.add(escaped.encode_utf8(&mut [0; 4]));
        }
    }

    fn quote(&mut self) {
        self.add("");
        while let Some(next) = self.rest.chars().next() {
            let rest = &self.rest[next.len_utf8()..];
            self.rest = rest;
            match next {
                '"' => return,
                '\\' if rest.starts_with(['"', '\\', '$', '`', '\n']) => self.escape(),
                '$' if rest.starts_with('(') => self.substitute(),
                other => self.add(other.encode_utf8(&mut [0; 4])),
            }
        }
        panic!("the end of a double quote is missing");
    }

    /// `$(...)`: stays in the word as it is, and its commands count.
    fn substitute(&mut self) {
        let mut depth = 0;
        let end = self.rest.find(|character| {
            depth += i32::from(character == '(') - i32::from(character == ')');
            depth == 0
        });
        let end = end.expect("the end of $(");
        let (inner, after) = (&self.rest[1..end], &self.rest[end + 1..]);
        self.commands.extend(commands_of(inner));
        self.add(&format!("$({inner})"));
        self.rest = after;
    }

    /// Leaves out where the command reads from and writes to; keeps a here-document.
    fn redirect(&mut self) {
        // The number of a file, as in `2>&1`.
        if self.word.as_deref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        let is_here = self.rest.starts_with('<');
        let target = self.rest.trim_start_matches(['<', '>', '&', '-']).trim_start_matches([' ', '\t']);
        let length = target.find([' ', '\t', '\n', ';', '|', '&', ')']).unwrap_or(target.len());
        if is_here {
            self.here = Some(target[..length].trim_matches(['\'', '"']));
        }
        self.rest = &target[length..];
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_first = self.command.words.is_empty();
        if is_first && RESERVED.contains(&word.as_str()) {
            return;
        }
        match word.split_once('=') {
            Some((name, value)) if is_first && is_name(name) => {
                self.command.assignments.push((name.to_owned(), value.to_owned()));
            }
            _ => self.command.words.push(word),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        // Its here-document is still to come.
        if self.here.is_some() && self.rest.is_empty() {
            panic!("the text of a here-document is missing");
        }
        let command = std::mem::take(&mut self.command);
        // The head of a loop runs nothing.
        let is_loop = command.words.first().is_some_and(|word| word == "for");
        if command != Simple::default() && !is_loop {
            self.commands.push(command);
        }
    }

    fn take_here(&mut self) {
        let Some(end) = self.here.take() else { return };
        let mut text = String::new();
        let mut lines = self.rest.split_inclusive('\n');
        for line in lines.by_ref() {
            if line.trim_end() == end {
                break;
            }
            text.push_str(line);
        }
        let length = self.rest.len() - lines.map(str::len).sum::<usize>();
        self.rest = &self.rest[length..];
        let owner = self.commands.last_mut().expect("the command of a here-document");
        owner.here = Some(text);
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.bytes().all(is_letter) && !text.starts_with(|first: char| first.is_ascii_digit())
}

fn words_of(script: &str) -> Vec<Vec<String>> {
    commands_of(script).into_iter().map(|command| command.words).collect()
}

#[test]
fn commands_end_where_the_shell_ends_them() {
    let script = "a b | c 'd e' && (umask 077; f \"g $H\") # no\nuntil i 2>&1 >/dev/null; do j; done\nk \\\n  l";

    assert_eq!(
        words_of(script),
        [
            vec!["a", "b"],
            vec!["c", "d e"],
            vec!["umask", "077"],
            vec!["f", "g $H"],
            vec!["i"],
            vec!["j"],
            vec!["k", "l"],
        ]
    );
}

#[test]
fn a_substitution_and_a_here_document_count() {
    let commands = commands_of("A=1 b \"$(c d)\" >e <<END\nX=1\nEND\nf '{\"g\": \"...\"}' \"{\\\"h\\\": \\\"$I\\\"}\"");

    assert_eq!(words_of("for i in 1 2; do j$i; done"), [vec!["j$i"]]);
    assert_eq!(commands[0].words, ["c", "d"]);
    assert_eq!(commands[1].assignments, [("A".to_owned(), "1".to_owned())]);
    assert_eq!((commands[1].words.join(" "), commands[1].here.as_deref()), ("b $(c d)".to_owned(), Some("X=1\n")));
    assert_eq!(commands[2].words, ["f", r#"{"g": "..."}"#, r#"{"h": "$I"}"#]);
}
