//! The spelling that install.sh reads as the agent does. Pure.
//!
//! The script changes single lines of a policy with sed. So it refuses, in `check_enrolled` and `decode_policy`, what TOML allows and
//! sed would read in another way than the agent. The service refuses the same, when somebody can still correct it:
//! `tests/it/enrolments/policies.json` lists policies that both take and that both refuse, and a test of each reads it.

/// The keys about signatures, of commands and of builds: only the machine says whose signatures count.
const OF_SIGNERS: [&str; 6] = ["name", "signers", "approvals", "allow", "updates", "release_signers"];

/// Whether a character is blank within a line.
const BLANK: [char; 2] = [' ', '\t'];

/// Returns what install.sh would refuse, with its line.
pub fn fault_of(policy: &str) -> Option<String> {
    let mut lines = policy.split('\n').enumerate();
    lines.find_map(|(index, line)| Some(format!("line {}: {}", index + 1, fault_of_line(line)?)))
}

fn fault_of_line(line: &str) -> Option<&'static str> {
    if is_about_signatures(line) {
        return Some(
            "a policy about signatures or updates does not come from the service: name the signers where install.sh runs, with \
             --signers or --release-signers",
        );
    }
    if line.contains('\\') {
        return Some("install.sh reads no backslash: write the character itself");
    }
    if line.contains("\"\"\"") || line.contains("'''") {
        return Some("install.sh reads no text of several lines: use single quotes");
    }
    if !is_plain(line) {
        return Some(
            "install.sh reads one line each as in commands = \"off\", or a list of texts: no table, no quotes around the word \
             before the =, nothing but a comment after the value",
        );
    }
    None
}

fn is_about_signatures(line: &str) -> bool {
    let start = line.trim_start_matches(BLANK);
    let start = start.strip_prefix(['"', '\'']).unwrap_or(start);
    let names_one = OF_SIGNERS.iter().filter_map(|key| start.strip_prefix(key)).any(|rest| {
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
        rest.trim_start_matches(BLANK).starts_with('=')
    });
    let says_signed = line.split('=').skip(1).any(|value| {
        let value = value.trim_start_matches(BLANK);
        value.strip_prefix(['"', '\'']).is_some_and(|text| text.starts_with("signed"))
    });
    names_one || says_signed
}

/// Whether a line is a bare word with a text or the beginning of a list, or a further part of a list, a comment, or blank.
fn is_plain(line: &str) -> bool {
    let line = line.trim_start_matches(BLANK);
    let value = line.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter));
    if value.len() < line.len()
        && let Some(value) = value.trim_start_matches(BLANK).strip_prefix('=')
    {
        let value = value.trim_start_matches(BLANK);
        return value.starts_with('[') || after_text(value).is_some_and(is_end);
    }
    let mut rest = line;
    while let Some(after) = after_text(rest) {
        let after = after.trim_start_matches(BLANK);
        rest = after.strip_prefix(',').unwrap_or(after).trim_start_matches(BLANK);
    }
    is_end(rest.strip_prefix(']').unwrap_or(rest))
}

/// What follows the quoted text with which this begins.
fn after_text(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| ['"', '\''].contains(first))?;
    Some(text.strip_prefix(quote)?.split_once(quote)?.1)
}

fn is_end(rest: &str) -> bool {
    let rest = rest.trim_start_matches(BLANK);
    rest.is_empty() || rest.starts_with('#')
}
