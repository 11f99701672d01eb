//! Lets through what draws on the screen, and nothing else that a recording says to the terminal. Pure.
//!
//! The file comes from a server that somebody may have changed, and the terminal is the reader's own. A sequence could set its
//! clipboard, read its title, ask it for answers that the shell then takes as typed, or leave it in a mode. So what passes is a
//! list, and all else is left out whole.

/// As many rows and columns as a terminal of an agent has at most: more than that often, nothing changes any more.
const MAX_TIMES: u32 = 1_000;

/// Of the parameters of a sequence; no sequence that draws needs more.
const MAX_PARAMETERS: usize = 64;

/// The private modes that pass: cursor keys are not among them, because they change what is typed.
const MODES: [u32; 7] = [5, 6, 7, 25, 47, 1047, 1049];

/// Those of another screen.
const SCREENS: [u32; 3] = [47, 1047, 1049];

/// Filters the output of a terminal, in pieces of any length.
#[derive(Debug, Default)]
pub struct Filter {
    state: State,
    /// It shows the other screen.
    is_other_screen: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum State {
    #[default]
    Text,
    Escape,
    /// After ESC and one of `(` and `)`.
    Charset(char),
    /// A sequence of one more character that is not shown.
    Skipped,
    /// Parameters and intermediate characters of a control sequence so far; too many are no longer kept.
    Control(String),
    /// A text for the terminal itself. ESC ends it, also where no `\\` follows, as in every terminal.
    Message,
}

impl Filter {
    /// What of a piece may be shown.
    pub fn pass(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for character in piece.chars() {
            self.take(character, &mut shown);
        }
        shown
    }

    /// What makes the terminal as it was before, with the cursor on the last line: to reset margins moves it to the first one.
    pub fn restore(&self) -> String {
        let screen = if self.is_other_screen { "\x1b[?1049l" } else { "" };
        format!("{screen}\x1b[r\x1b[0m\x1b[4l\x1b[?5;6l\x1b[?7;25h\x1b(B\x1b)B\x0f\x1b[999;1H\r\n")
    }

    fn take(&mut self, character: char, shown: &mut String) {
        self.state = match (std::mem::take(&mut self.state), character) {
            // CAN and SUB end every sequence.
            (_, '\x18' | '\x1a') => State::Text,
            (_, '\x1b') => State::Escape,
            (State::Message, '\x07' | '\u{9c}') => State::Text,
            (State::Message, _) => State::Message,
            (State::Text, character) => begin(character, shown),
            (State::Escape, character) => after_escape(character, shown),
            (State::Charset(which), character) => {
                if matches!(character, '0' | 'A' | 'B') {
                    shown.extend(['\x1b', which, character]);
                }
                State::Text
            }
            (State::Skipped, '\x20'..='\x2f') => State::Skipped,
            (State::Skipped, _) => State::Text,
            (State::Control(mut given), '\x20'..='\x3f') => {
                if given.len() <= MAX_PARAMETERS {
                    given.push(character);
                }
                State::Control(given)
            }
            (State::Control(given), last @ '\x40'..='\x7e') => {
                self.control(&given, last, shown);
                State::Text
            }
            // A terminal does what is between; here nothing of it is left.
            (State::Control(given), _) => State::Control(given),
        };
    }

    fn control(&mut self, given: &str, last: char, shown: &mut String) {
        if !is_drawing(given, last) {
            return;
        }
        if let Some(modes) = given.strip_prefix('?')
            && modes.split(';').filter_map(|mode| mode.parse().ok()).any(|mode: u32| SCREENS.contains(&mode))
        {
            self.is_other_screen = last == 'h';
        }
        shown.push_str("\x1b[");
        shown.push_str(given);
        shown.push(last);
    }
}

fn begin(character: char, shown: &mut String) -> State {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match character {
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => return State::Message,
        '\u{9b}' => return State::Control(String::new()),
        // The bell would ring, and ENQ be answered.
        '\n' | '\r' | '\t' | '\x08' | '\x0b' | '\x0c' | '\x0e' | '\x0f' => shown.push(character),
        _ if character.is_control() || turns => {}
        _ => shown.push(character),
    }
    State::Text
}

fn after_escape(character: char, shown: &mut String) -> State {
    match character {
        '[' => return State::Control(String::new()),
        ']' | 'P' | 'X' | '^' | '_' => return State::Message,
        '(' | ')' => return State::Charset(character),
        // Save and restore the cursor, line feeds.
        '7' | '8' | 'D' | 'E' | 'M' => shown.extend(['\x1b', character]),
        // `ESC # 8` and the like: one more character, of which nothing is shown.
        '\x20'..='\x2f' => return State::Skipped,
        _ => {}
    }
    State::Text
}

/// Whether a control sequence only draws.
fn is_drawing(given: &str, last: char) -> bool {
    if given.len() > MAX_PARAMETERS {
        return false;
    }
    let numbers = |text: &str| -> Option<Vec<u32>> {
        text.split([';', ':']).map(|number| if number.is_empty() { Some(0) } else { number.parse().ok() }).collect()
    };
    if let Some(modes) = given.strip_prefix('?') {
        let are_known = || numbers(modes).is_some_and(|modes| modes.iter().all(|mode| MODES.contains(mode)));
        return matches!(last, 'h' | 'l') && are_known();
    }
    let Some(numbers) = numbers(given) else { return false };
    match last {
        'm' => true,
        'h' | 'l' => numbers == [4],
        'L' | 'M' | 'S' | 'T' | 'I' | 'Z' | 'b' => numbers.iter().all(|times| *times <= MAX_TIMES),
        // More than 2 erases what the reader's terminal showed before.
        'J' => numbers.iter().all(|part| *part <= 2),
        // Movements of the cursor, erasing, inserting, margins, a saved position.
        'A'..='H' | 'K' | 'P' | 'X' | '@' | '`' | 'a' | 'd'..='f' | 'r' | 's' | 'u' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str) -> String {
        Filter::default().pass(text)
    }

    #[test]
    fn what_draws_passes_as_it_is() {
        for text in [
            "plain\r\n\ttext é\u{8}",
            "\x1b[1;38;5;12mred\x1b[0m\x1b[38:2::1:2:3m",
            "\x1b[2J\x1b[H\x1b[12;40H\x1b[K\x1b[5A\x1b[1000L\x1b[3;20r",
            "\x1b7\x1b8\x1bM\x1b(0lqk\x1b(B",
            "\x1b[?25l\x1b[?1049h\x1b[?7h\x1b[4h",
        ] {
            assert_eq!(passed(text), text, "{text:?}");
        }
    }

    #[test]
    fn what_speaks_to_the_terminal_is_left_out_whole() {
        for harmful in [
            "\x1b]52;c;ZXZpbA==\x07",
            "\x1b]0;title\x1b\\",
            "\u{9d}0;title\u{9c}",
            "\x1bP$q\"p\x1b\\",
            "\x1b_Gi=1;AAAA\x1b\\",
            "\x1b^private\x1b\\",
            "\x1b[c",
            "\x1b[>0c",
            "\u{9b}6n",
            "\x1b[?6n",
            "\x1b[21t",
            "\x1b[?1000h",
            "\x1b[?25;1000h",
            "\x1b[?2004h",
            "\x1b[>1u",
            "\x1b[1001L",
            "\x1b[4294967296b",
            "\x1b[!p",
            "\x1bc",
            "\x1bZ",
            "\x1b#8",
            "\x1bH",
            "\x1b[3g",
            "\x1b[?12h",
            "\x1b[3J",
            "\x1b[0;3J",
            "\x1b=",
            "\x05\x07\u{85}\u{202e}",
            "\x1b[\x1b]0;x\x07",
        ] {
            assert_eq!(passed(&format!("a{harmful}b")), "ab", "{harmful:?}");
        }
    }

    #[test]
    fn an_escape_ends_a_text_for_the_terminal() {
        assert_eq!(passed("a\x1b]0;title\x1b[mb"), "a\x1b[mb");
        assert_eq!(passed("a\x1bPtext\x1b]0;title\x07b\x1b_text\x1b(0c"), "ab\x1b(0c");
        assert_eq!(passed("a\x1b]0;title\x1b\x1b\\b"), "ab");
        assert_eq!(passed("a\x1b]0;title\x1b\x18b"), "ab");
    }

    #[test]
    fn the_end_leaves_the_cursor_on_the_last_line() {
        let mut filter = Filter::default();
        filter.pass("\x1b[?1049h\x1b[2;5r");

        let restored = filter.restore();

        assert!(restored.starts_with("\x1b[?1049l\x1b[r") && restored.ends_with("\x1b[999;1H\r\n"), "{restored:?}");
    }

    #[test]
    fn a_sequence_in_pieces_is_one() {
        let mut filter = Filter::default();
        let text = "a\x1b[31mb\x1b]52;c;ZXZpbA==\x1b\\c\x1b[?1049hd\x1b[6n";

        let shown: String = text.chars().map(|character| filter.pass(&character.to_string())).collect();

        assert_eq!(shown, "a\x1b[31mbc\x1b[?1049hd");
        assert!(filter.restore().starts_with("\x1b[?1049l"));
        filter.pass("\x1b[?1049l");
        assert!(!filter.restore().contains("1049"));
    }

    #[test]
    fn a_text_without_end_shows_nothing_and_keeps_nothing() {
        let mut filter = Filter::default();
        assert_eq!(filter.pass(&format!("\x1b[{}", "1;".repeat(100_000))), "");
        assert!(matches!(&filter.state, State::Control(given) if given.len() <= MAX_PARAMETERS + 1));
        assert_eq!(filter.pass("mx"), "x");
    }
}
