//! Commands that run without a signature, and without a shell.

/// Patterns of the owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed(Vec<Vec<String>>);

/// Stands for one word.
const ANY: &str = "*";

impl Allowed {
    /// Reads patterns such as `journalctl -n *`. An error names the pattern.
    pub fn parse(patterns: &[String]) -> Result<Self, String> {
        let parsed = patterns.iter().map(|pattern| {
            let words =
                words(pattern).ok_or_else(|| format!("allow: `{}` has control characters", pattern.escape_debug()))?;
            match words.first() {
                Some(program) if program.contains(ANY) => Err(format!("allow: `{pattern}` would run any program")),
                Some(_) if words.iter().any(|word| word != ANY && word.contains(ANY)) => {
                    Err(format!("allow: in `{pattern}` a `*` is part of a word: it stands for one whole word"))
                }
                Some(_) => Ok(words),
                None => Err("allow: a pattern is empty".to_owned()),
            }
        });
        parsed.collect::<Result<_, String>>().map(Self)
    }

    pub fn patterns(&self) -> &[Vec<String>] {
        &self.0
    }

    /// The words of a command that a pattern allows. They go to the program as they are: nothing expands or interprets them.
    pub fn words_of(&self, command: &str) -> Option<Vec<String>> {
        let words = words(command)?;
        self.0.iter().any(|pattern| matches(pattern, &words)).then_some(words)
    }
}

/// The words between blanks. None if there is a character that no command needs.
fn words(text: &str) -> Option<Vec<String>> {
    let is_sound = !text.chars().any(char::is_control);
    is_sound.then(|| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

fn matches(pattern: &[String], words: &[String]) -> bool {
    // An option could change what the program does, so `*` stands for no word that begins like one.
    let is_match =
        |(wanted, word): (&String, &String)| if wanted == ANY { !word.starts_with('-') } else { wanted == word };
    pattern.len() == words.len() && pattern.iter().zip(words).all(is_match)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Allowed {
        Allowed::parse(&["systemctl restart nginx".to_owned(), "journalctl -n * -u *".to_owned()]).unwrap()
    }

    #[test]
    fn a_command_runs_if_it_is_a_pattern_word_for_word() {
        let words = allowed().words_of("journalctl -n 50  -u nginx").unwrap();

        assert_eq!(words, ["journalctl", "-n", "50", "-u", "nginx"]);
        assert_eq!(allowed().words_of("journalctl -n $(id) -u `id`").unwrap()[2], "$(id)");
        let others = [
            "systemctl restart nginx; id",
            "systemctl restart nginx ;id",
            "systemctl restart nginx &",
            "systemctl restart",
            "systemctl restart nginx nginx",
            "systemctl restart nginx\nid",
            "systemctl\trestart nginx",
            "journalctl -n 50",
            "journalctl -n --vacuum-size=1 -u nginx",
            "journalctl -n 50 -u -x",
            "./systemctl restart nginx",
            "",
        ];
        for other in others {
            assert_eq!(allowed().words_of(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_pattern_that_would_allow_too_much_is_refused() {
        for pattern in ["*", "* restart nginx", "", "  ", "systemctl restart ngin*", "a\nb", "s*h x"] {
            let refusal = Allowed::parse(&[pattern.to_owned()]).unwrap_err();
            assert!(refusal.starts_with("allow: ") && !refusal.contains('\n'), "{refusal}");
        }
    }
}
