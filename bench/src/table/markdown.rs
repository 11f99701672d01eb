//! The table for people.

use std::fmt::Write as _;

use super::measured::Measured;
use crate::figures::{Better, Facts, Machine, Row};
use crate::stats::median;

/// The variation of a shared machine, in percent, which is not reported as better or worse.
const NOISE_PERCENT: f64 = 5.0;

/// All rows of a run, next to those of the previous run.
pub fn table(now: &Measured, previous: Option<&Measured>) -> String {
    let mut text = String::new();
    title(&mut text, now);
    machine(&mut text, now, previous);
    text.push_str("\n| row | previous | now | change | aim | met |\n|---|---|---|---|---|---|\n");
    for row in Row::ALL {
        text.push_str(&line(*row, now, previous));
    }
    notes(&mut text, now);
    text
}

fn title(text: &mut String, now: &Measured) {
    let of = now.run.as_ref().map_or_else(String::new, |run| format!(" of commit {}, {}", run.commit, run.date));
    append(text, format_args!("# Figures{of}\n"));
    if now.run.as_ref().is_some_and(|run| run.short) {
        append(text, format_args!("**A short run, with fewer agents and seconds: these are no figures.**\n"));
    }
}

/// The machine, and its other load.
fn machine(text: &mut String, now: &Measured, previous: Option<&Measured>) {
    if let Some(Machine { cores, processor, kernel, .. }) = now.machines.first() {
        let where_on = format!("{cores} cores ({processor}), shared by service and load generator; Linux {kernel}");
        append(text, format_args!("{where_on}; release build, the agent beside others and signalboxctl as shipped.\n"));
        append(text, format_args!("| machine | load averages | busy for others, % | withheld by the host, % |"));
        append(text, format_args!("|---|---|---|---|"));
    }
    let last = now.machines.len().saturating_sub(1);
    for (number, machine) in now.machines.iter().enumerate() {
        let when = match number {
            0 => "at the beginning",
            number if number == last => "at the end",
            _ => "in between",
        };
        let load = machine.load.map(|average| format!("{average:.2}")).join(", ");
        let [busy, stolen] = [machine.busy_percent, machine.stolen_percent].map(|value| format!("{value:.1}"));
        append(text, format_args!("| {when} | {load} | {busy} | {stolen} |"));
    }
    if !now.machines.is_empty() {
        text.push('\n');
    }
    if let Some(sentence) = hello(now, previous) {
        append(text, format_args!("{sentence}"));
    }
    match previous.and_then(|previous| previous.run.as_ref()) {
        Some(run) => append(text, format_args!("The previous figures are of commit {}, {}.", run.commit, run.date)),
        None => append(text, format_args!("There are no previous figures.")),
    }
}

/// How fast the machine was, and by how much that differs from the last time.
fn hello(now: &Measured, previous: Option<&Measured>) -> Option<String> {
    let rates: Vec<f64> = now.machines.iter().filter_map(|machine| machine.hello).collect();
    let middle = median(&rates)?;
    let each: Vec<String> = rates.iter().map(|rate| shown(*rate)).collect();
    let by_last = previous.and_then(|previous| previous.value(Row::MachineHello)).filter(|last| *last > 0.0);
    let by_last = by_last.map_or_else(String::new, |last| format!(", {:.2} of the last time", middle / last));
    Some(format!("A bare hello of the same framework: {} requests/s{by_last}.", each.join(", ")))
}

fn line(row: Row, now: &Measured, previous: Option<&Measured>) -> String {
    let Facts { id, scenario, text, unit, better, aim } = row.facts();
    let before = previous.and_then(|previous| previous.value(row));
    let value = now.value(row);
    let measured = match (value, now.why(scenario)) {
        (Some(value), _) => shown(value),
        (None, why) if why.is_empty() => "not measured".to_owned(),
        (None, why) => format!("not measured: {}", for_a_cell(&why)),
    };
    let changed = match (before, value) {
        (Some(before), Some(value)) => change(before, value, better),
        _ => String::new(),
    };
    let met = match (aim, value) {
        (Some(aim), Some(value)) if aim.is_met_by(value) => "yes",
        (Some(_), Some(_)) => "**no**",
        _ => "",
    };
    let was = before.map(shown).unwrap_or_default();
    let limit = aim.map(|aim| grouped(&aim.to_string())).unwrap_or_default();
    format!("| {text}, {unit} (`{id}`) | {was} | {measured} | {changed} | {limit} | {met} |\n")
}

/// By how much a figure moved, and whether that is good where it is more than noise.
fn change(before: f64, now: f64, better: Better) -> String {
    if before <= 0.0 || now < 0.0 {
        // A difference of two latencies may be anything.
        return signed(now - before, &shown((now - before).abs()));
    }
    let percent = (now / before - 1.0) * 100.0;
    let text = format!("{} %", signed(percent, &format!("{:.0}", percent.abs())));
    match better {
        _ if percent.abs() < NOISE_PERCENT => text,
        Better::Lower if percent < 0.0 => format!("{text}, better"),
        Better::Higher if percent > 0.0 => format!("{text}, better"),
        Better::Lower | Better::Higher => format!("{text}, worse"),
    }
}

fn signed(value: f64, size: &str) -> String {
    let is_nothing = !size.contains(|digit: char| ('1'..='9').contains(&digit));
    match value {
        _ if is_nothing => size.to_owned(),
        value if value < 0.0 => format!("−{size}"),
        _ => format!("+{size}"),
    }
}

fn notes(text: &mut String, now: &Measured) {
    append(text, format_args!("\nA change below {NOISE_PERCENT} % is called neither better nor worse."));
    if !now.not_measured.is_empty() {
        append(text, format_args!("\nFailed, or not run:\n"));
    }
    for reason in &now.not_measured {
        append(text, format_args!("- `{}`: {}", reason.scenario, reason.why));
    }
    if !now.unknown.is_empty() {
        append(text, format_args!("\nFigures of no row: {}.", now.unknown.join(", ")));
    }
}

/// Appends a line. A string never fails.
fn append(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").ok();
}

/// Some three digits, thousands apart.
fn shown(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    grouped(&format!("{value:.digits$}"))
}

/// Parts the thousands of the one number in a text.
fn grouped(text: &str) -> String {
    let (before, number) = text.split_at(text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len()));
    let (digits, after) = number.split_at(number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len()));
    let mut grouped = before.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + after
}

/// Removes what would end a cell of a table.
fn for_a_cell(text: &str) -> String {
    text.replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Line, Run};

    fn run(commit: &str, date: &str) -> Line {
        Line::Run(Run { commit: commit.to_owned(), date: date.to_owned(), short: false })
    }

    fn machine_with(hello: Option<f64>) -> Line {
        Line::Machine(Machine {
            cores: 2,
            processor: "Some CPU".to_owned(),
            kernel: "6.1.0".to_owned(),
            load: [0.5, 0.25, 0.12],
            busy_percent: 1.2,
            stolen_percent: 0.0,
            hello,
        })
    }

    fn of(lines: impl IntoIterator<Item = Option<Line>>) -> Measured {
        Measured::of(lines.into_iter().flatten())
    }

    #[test]
    fn a_row_says_how_it_moved_and_whether_it_is_there() {
        let previous = of([Line::figure(Row::Burst, 80_000.0)]);
        let now = of([Line::figure(Row::Burst, 160_000.0)]);

        let text = line(Row::Burst, &now, Some(&previous));

        let expected = "| burst, samples acknowledged, a second and core (`burst`) | 80,000 | 160,000 | +100 %, better | \
                        ≥ 150,000 | yes |\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_row_that_was_not_measured_says_why() {
        let previous = of([Line::figure(Row::RestOfHello, 43.0)]);
        let now = of([Some(Line::not_measured("rest", "a | b"))]);

        let text = line(Row::RestOfHello, &now, Some(&previous));

        assert_eq!(
            text,
            "| `GET /metrics/{id}`, % of hello (`rest-of-hello`) | 43.0 | not measured: a / b |  | ≥ 70 |  |\n"
        );
    }

    #[test]
    fn a_table_begins_with_the_machine() {
        let previous = of([Some(run("abc", "2026-11-23")), Line::figure(Row::MachineHello, 80_000.0)]);
        let now = of([
            Some(run("def", "2026-11-24")),
            Some(machine_with(Some(60_000.0))),
            Some(machine_with(None)),
            Some(machine_with(Some(68_000.0))),
        ]);

        let text = table(&now, Some(&previous));

        let expected = "\
# Figures of commit def, 2026-11-24

2 cores (Some CPU), shared by service and load generator; Linux 6.1.0; release build, the agent beside others and signalboxctl as shipped.

| machine | load averages | busy for others, % | withheld by the host, % |
|---|---|---|---|
| at the beginning | 0.50, 0.25, 0.12 | 1.2 | 0.0 |
| in between | 0.50, 0.25, 0.12 | 1.2 | 0.0 |
| at the end | 0.50, 0.25, 0.12 | 1.2 | 0.0 |

A bare hello of the same framework: 60,000, 68,000 requests/s, 0.80 of the last time.
The previous figures are of commit abc, 2026-11-23.

| row | previous | now | change | aim | met |
|---|---|---|---|---|---|
";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_table_has_every_row_whatever_was_measured() {
        let text = table(&Measured::default(), None);

        for row in Row::ALL {
            assert_eq!(text.matches(&format!("(`{}`)", row.facts().id)).count(), 1, "{text}");
        }
        assert!(text.contains("There are no previous figures."));
    }

    #[test]
    fn a_change_is_judged_where_it_is_more_than_noise() {
        assert_eq!(change(100.0, 103.0, Better::Lower), "+3 %");
        assert_eq!(change(100.0, 100.2, Better::Lower), "0 %");
        assert_eq!(change(20.0, 10.0, Better::Lower), "−50 %, better");
        assert_eq!(change(10.0, 20.0, Better::Lower), "+100 %, worse");
        assert_eq!(change(10.0, 20.0, Better::Higher), "+100 %, better");
        assert_eq!(change(20.0, 10.0, Better::Higher), "−50 %, worse");
        assert_eq!(change(-0.25, 0.5, Better::Lower), "+0.750");
        assert_eq!(change(0.5, -0.25, Better::Lower), "−0.750");
    }

    #[test]
    fn numbers_have_some_three_digits() {
        assert_eq!(
            [113_456.7, 1234.0, 24.81, 4.711, 0.115, 0.0575, 0.0, -5.4].map(shown),
            ["113,457", "1,234", "24.8", "4.71", "0.115", "0.0575", "0", "-5.40"]
        );
    }
}
