//! Divides a line into commands and words. Pure.

/// A word, without its quotes.
pub type Word = String;

/// When a step runs, by the outcome of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    Always,
    IfSucceeded,
    IfFailed,
}

/// Commands whose output goes from one to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub joint: Joint,
    pub commands: Vec<Vec<Word>>,
}

/// Why a line cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    #[error("Syntax error: Unterminated quoted string")]
    Quote,
    #[error("Syntax error: \"{0}\" unexpected")]
    Unexpected(char),
}

#[derive(Default)]
struct Reader {
    steps: Vec<Step>,
    commands: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Option<String>,
}

/// The steps of a line.
pub fn parse(line: &str) -> Result<Vec<Step>, SyntaxError> {
    let mut reader = Reader::default();
    let mut joint = Joint::Always;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = reader.word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some(quote) if quote == character => break,
                        Some('\\') if character == '"' => word.extend(characters.next()),
                        Some(other) => word.push(other),
                        None => return Err(SyntaxError::Quote),
                    }
                }
            }
            '\\' => reader.word.get_or_insert_default().extend(characters.next()),
            ';' | '\n' => reader.end_step(&mut joint, Joint::Always, character)?,
            '&' if characters.next_if_eq(&'&').is_some() => reader.end_step(&mut joint, Joint::IfSucceeded, '&')?,
            '|' if characters.next_if_eq(&'|').is_some() => reader.end_step(&mut joint, Joint::IfFailed, '|')?,
            '|' => reader.end_command('|')?,
            '(' | ')' | '<' | '>' | '&' => return Err(SyntaxError::Unexpected(character)),
            '#' if reader.word.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            space if space.is_whitespace() => reader.end_word(),
            other => reader.word.get_or_insert_default().push(other),
        }
    }
    reader.end_word();
    if !reader.words.is_empty() || !reader.commands.is_empty() {
        reader.end_step(&mut joint, Joint::Always, ';')?;
    } else if joint != Joint::Always {
        return Err(SyntaxError::Unexpected(';'));
    }
    Ok(reader.steps)
}

impl Reader {
    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self, end: char) -> Result<(), SyntaxError> {
        self.end_word();
        if self.words.is_empty() {
            return Err(SyntaxError::Unexpected(end));
        }
        self.commands.push(std::mem::take(&mut self.words));
        Ok(())
    }

    /// Ends a step. `joint` is its own, and becomes that of the next.
    fn end_step(&mut self, joint: &mut Joint, next: Joint, end: char) -> Result<(), SyntaxError> {
        self.end_word();
        let is_empty = self.words.is_empty() && self.commands.is_empty();
        if !(is_empty && end == '\n') {
            self.end_command(end)?;
            let commands = std::mem::take(&mut self.commands);
            self.steps.push(Step { joint: std::mem::replace(joint, next), commands });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<Word>> {
        parse(line).unwrap().into_iter().flat_map(|step| step.commands).collect()
    }

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words("grep 'a b'  \"c \\\" d\" e\\ f"), [["grep", "a b", "c \" d", "e f"]]);
        assert_eq!(words("echo '' # a comment"), [["echo", ""]]);
    }

    #[test]
    fn steps_know_when_they_run() {
        let joints: Vec<Joint> = parse("a && b || c; d").unwrap().into_iter().map(|step| step.joint).collect();

        assert_eq!(joints, [Joint::Always, Joint::IfSucceeded, Joint::IfFailed, Joint::Always]);
    }

    #[test]
    fn what_this_shell_does_not_know_is_refused() {
        assert_eq!(parse("a > b"), Err(SyntaxError::Unexpected('>')));
        assert_eq!(parse("| a"), Err(SyntaxError::Unexpected('|')));
        assert_eq!(parse("a &&"), Err(SyntaxError::Unexpected(';')));
        assert_eq!(parse("a; "), parse("a"));
    }
}
