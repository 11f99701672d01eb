//! Counts a numbered log. Pure.

use anyhow::Context;

/// The lines that one dashboard received of a log whose lines begin with their numbers: 1, 2, 3, ...
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub received: u64,
    /// The lines that the service reports as missed by this dashboard.
    pub told: u64,
    /// Lines that came again, or after a later one.
    pub disordered: u64,
    /// The highest number so far.
    pub last: u64,
}

impl Tally {
    /// Counts a message. It does not parse all of it: there are a million for each dashboard, and the generator shares its
    /// cores with the measured programs.
    pub fn note(&mut self, message: &str) -> anyhow::Result<()> {
        if let Some(line) = after(message, r#""message":""#) {
            let number = leading_number(line).with_context(|| format!("a line without its number: {message}"))?;
            match number > self.last {
                true => (self.received, self.last) = (self.received + 1, number),
                false => self.disordered += 1,
            }
            return Ok(());
        }
        if message.contains(r#""type":"dropped""#) {
            let count = after(message, r#""count":"#).and_then(leading_number);
            self.told += count.with_context(|| format!("dropped without a count: {message}"))?;
            return Ok(());
        }
        anyhow::ensure!(!message.contains(r#""type":"error""#), "the log ended: {message}");
        Ok(())
    }

    /// Lines up to the last one that neither arrived nor were reported as missed.
    pub fn missing(&self) -> u64 {
        self.last.saturating_sub(self.received)
    }
}

/// A line of `bytes` bytes with its end, which [`Tally::note`] understands.
pub fn line(number: u64, bytes: usize) -> String {
    let mut line = format!("{number:010} ");
    while line.len() + 1 < bytes {
        line.push_str("GET /index.html 200 ");
    }
    line.truncate(bytes.saturating_sub(1).max(11));
    line.push('\n');
    line
}

fn after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(number: u64) -> String {
        let line = line(number, 40);
        let data = format!(r#"{{"source":"file","timestamp":null,"stream":null,"message":"{}"}}"#, line.trim_end());
        format!(r#"{{"type":"log","data":{data}}}"#)
    }

    #[test]
    fn lines_and_gaps_are_counted() {
        let mut tally = Tally::default();

        tally.note(&told(1)).unwrap();
        tally.note(r#"{"type":"dropped","data":{"count":2}}"#).unwrap();
        tally.note(&told(4)).unwrap();

        assert_eq!(tally, Tally { received: 2, told: 2, disordered: 0, last: 4 });
        assert_eq!(tally.missing(), 2);
    }

    #[test]
    fn a_line_that_comes_again_is_out_of_order() {
        let mut tally = Tally::default();
        [7, 7, 6, 8].into_iter().for_each(|number| tally.note(&told(number)).unwrap());

        assert_eq!((tally.received, tally.disordered), (2, 2));
    }

    #[test]
    fn an_error_ends_it_and_other_messages_do_not() {
        let mut tally = Tally::default();

        assert!(tally.note(r#"{"type":"token_expiring"}"#).is_ok());
        assert!(tally.note(r#"{"type":"error","data":{"code":"path_not_allowed","detail":"no"}}"#).is_err());
    }

    #[test]
    fn a_line_has_its_length() {
        assert_eq!(line(42, 120).len(), 120);
        assert!(line(42, 120).starts_with("0000000042 GET"));
        assert_eq!(line(42, 3), "0000000042 \n");
    }
}
