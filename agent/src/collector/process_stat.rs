//! `/proc/PID/stat` of one process (proc(5)).
//!
//! It contains everything that the agent needs, so each process costs one file. Its memory is the same number as in `statm`.
//! The agent never opens `cmdline`, which may contain secrets and whose reading may hang.

/// The contents of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// The program's name, which the kernel cuts to 15 bytes; any bytes, including spaces and parentheses.
    pub name: &'a [u8],
    /// In user and kernel mode, of all its threads, in clock ticks.
    pub cpu_ticks: u64,
    /// When it started, in clock ticks since boot. With the pid it distinguishes a process from a later one with the same pid.
    pub started_at: u64,
    /// Resident memory.
    pub pages: u64,
}

/// Indices of the fields after the name.
const USER_TICKS: usize = 11;
const KERNEL_TICKS: usize = 12;
const STARTED_AT: usize = 19;
const PAGES: usize = 21;

/// None for a line that is truncated or otherwise malformed.
pub fn parse(line: &[u8]) -> Option<Stat<'_>> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    // The last one: those before it belong to the name.
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let name = line.get(open + 1..close)?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let mut values = [0_u64; PAGES + 1];
    let mut last = 0;
    for (place, field) in rest.trim_start().split(' ').enumerate() {
        last = place;
        let Some(value) = values.get_mut(place) else { break };
        // The first field is a letter and some are negative; none of those matters here.
        *value = field.parse().unwrap_or(0);
    }
    let value = |place: usize| values.get(place).copied();
    let cpu_ticks = value(USER_TICKS)?.saturating_add(value(KERNEL_TICKS)?);
    let stat = Stat { name, cpu_ticks, started_at: value(STARTED_AT)?, pages: value(PAGES)? };
    // Unless another field follows, the last number may be truncated.
    (last > PAGES).then_some(stat)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "4711 (nginx) S 1 4711 4711 0 -1 4194560 918 0 2 0 250 75 9 9 20 0 1 0 880123 12345678 512 \
                        18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n";

    #[test]
    fn a_line_says_name_ticks_start_and_memory() {
        let expected = Stat { name: b"nginx", cpu_ticks: 325, started_at: 880_123, pages: 512 };

        assert_eq!(parse(LINE.as_bytes()), Some(expected));
    }

    #[test]
    fn a_name_may_hold_blanks_parentheses_and_any_byte() {
        for name in [&b"tmux: server"[..], b"(sd-pam)", b"a) S 1 (b", b"\xff\xfe", b""] {
            let line = [b"4711 (", name, b")", LINE.split_once(')').unwrap().1.as_bytes()].concat();

            let stat = parse(&line).unwrap();

            assert_eq!((stat.name, stat.cpu_ticks), (name, 325));
        }
    }

    #[test]
    fn a_line_that_ends_early_says_nothing() {
        let end_of_pages = LINE.find(" 18446744073709551615").unwrap();

        assert!((0..=end_of_pages).all(|length| parse(&LINE.as_bytes()[..length]).is_none()));
    }
}
