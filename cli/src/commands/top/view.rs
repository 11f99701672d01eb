//! Draws the table: only the rows that are visible.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Row as Drawn, Table};
use signalbox_protocol::frontend::ServerStatus;

use super::model::{Model, Row, Sort};
use crate::output::text::{bytes, clean};
use crate::output::time::age;

pub const HEADINGS: [&str; 10] =
    ["NAME", "STATUS", "CPU", "MEMORY", "DISK", "LOAD", "IN/S", "OUT/S", "UPTIME", "CONTAINERS"];
const SORTS: [Sort; 9] =
    [Sort::Name, Sort::Status, Sort::Cpu, Sort::Memory, Sort::Disk, Sort::Load, Sort::In, Sort::Out, Sort::Uptime];

/// From here on a percentage is worth a look, and from there on worse.
const WARN: f64 = 75.0;
const ALARM: f64 = 90.0;

/// With a column between each and the next, all fit 100 columns. Narrower terminals lose the last ones.
const WIDTHS: [u16; 10] = [12, 8, 8, 8, 8, 7, 9, 9, 8, 10];

/// How many columns of the table fit; the name always does.
fn fitting(width: u16) -> usize {
    let mut taken = 0;
    let fits = |column: &&u16| {
        taken += **column + 1;
        taken <= width + 1
    };
    WIDTHS.iter().take_while(fits).count().max(1)
}

/// The fields of a server, as text.
pub fn cells(row: &Row) -> [String; 10] {
    let Some(state) = &row.state else {
        return std::array::from_fn(|column| match column {
            0 => clean(&row.name),
            1 => "?".to_owned(),
            _ => "-".to_owned(),
        });
    };
    let status = match state.status {
        ServerStatus::Pending => "pending",
        ServerStatus::Online => "online",
        ServerStatus::Offline => "offline",
    };
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let percent = |value: Option<f64>| text(value.map(|value| format!("{value:.1} %")));
    let rate = |value: Option<f64>| text(value.map(bytes));
    [
        clean(&row.name),
        status.to_owned(),
        percent(state.cpu_percent),
        percent(state.memory_percent),
        percent(state.disk_percent),
        text(state.load_1.map(|load| format!("{load:.2}"))),
        rate(state.network_in),
        rate(state.network_out),
        text(state.uptime_seconds.map(|seconds| age(i64::try_from(seconds).unwrap_or(i64::MAX)))),
        text(state.containers.map(|count| count.to_string())),
    ]
}

/// Draws everything, and notes in the model how many rows fit.
pub fn draw(frame: &mut Frame<'_>, model: &mut Model, has_colours: bool) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(headline(model), head);
    table(frame, body, model, has_colours);
    frame.render_widget(footline(model, has_colours), foot);
}

fn headline(model: &Model) -> Line<'static> {
    let (all, online) = model.counts();
    let filter = match (model.is_typing, model.filter.is_empty()) {
        (true, _) => format!("   filter: {}▏", model.filter),
        (false, false) => format!("   filter: {}", model.filter),
        (false, true) => String::new(),
    };
    let servers = if all == 1 { "server" } else { "servers" };
    Line::from(format!("{all} {servers}, {online} online{filter}"))
}

fn footline(model: &Model, has_colours: bool) -> Line<'static> {
    match &model.fault {
        Some(reason) => {
            Line::from(Span::styled(format!("{}; reconnecting", clean(reason)), colour(has_colours, Color::Red)))
        }
        None => Line::from("arrows move · c m d l i o u n s sort · r reverse · / filter · q quit"),
    }
}

fn table(frame: &mut Frame<'_>, area: Rect, model: &mut Model, has_colours: bool) {
    // One row is that of the headings.
    model.height = usize::from(area.height.saturating_sub(1)).max(1);
    let shown = model.shown();
    let marked = model.marked.and_then(|marked| shown.iter().position(|row| row.id == marked));
    let mut top = model.top.min(shown.len().saturating_sub(model.height));
    if let Some(marked) = marked {
        top = top.min(marked).max((marked + 1).saturating_sub(model.height));
    }
    let visible = shown.iter().enumerate().skip(top).take(model.height);
    let rows: Vec<Drawn<'_>> = visible.map(|(index, row)| drawn(row, Some(index) == marked, has_colours)).collect();
    let headings = HEADINGS.iter().enumerate().map(|(index, heading)| {
        let is_sorted = SORTS.get(index) == Some(&model.sort);
        let arrow = if model.is_reversed { "▲" } else { "▼" };
        let text = if is_sorted { format!("{heading} {arrow}") } else { (*heading).to_owned() };
        let style =
            Style::new().add_modifier(if is_sorted { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::BOLD });
        let line = Line::from(Span::styled(text, style));
        if index > 1 { line.right_aligned() } else { line }
    });
    let widths = WIDTHS.iter().take(fitting(area.width)).enumerate().map(|(index, width)| match index {
        // The name takes what is left.
        0 => Constraint::Min(*width),
        _ => Constraint::Length(*width),
    });
    let widths: Vec<Constraint> = widths.collect();
    frame.render_widget(Table::new(rows, widths).header(Drawn::new(headings.collect::<Vec<_>>())), area);
    model.top = top;
}

fn drawn(row: &Row, is_marked: bool, has_colours: bool) -> Drawn<'static> {
    let state = row.state.as_ref();
    let percents = [
        None,
        None,
        state.and_then(|s| s.cpu_percent),
        state.and_then(|s| s.memory_percent),
        state.and_then(|s| s.disk_percent),
    ];
    let lines = cells(row).into_iter().enumerate().map(|(index, text)| {
        let style = match percents.get(index).copied().flatten() {
            Some(value) if value >= ALARM => colour(has_colours, Color::Red),
            Some(value) if value >= WARN => colour(has_colours, Color::Yellow),
            _ if index == 1 => status_colour(&text, has_colours),
            _ => Style::new(),
        };
        let line = Line::from(Span::styled(text, style));
        if index > 1 { line.right_aligned() } else { line }
    });
    let style = if is_marked { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    Drawn::new(lines.collect::<Vec<_>>()).style(style)
}

fn status_colour(status: &str, has_colours: bool) -> Style {
    match status {
        "online" => colour(has_colours, Color::Green),
        "offline" => colour(has_colours, Color::Red),
        _ => Style::new().add_modifier(Modifier::DIM),
    }
}

fn colour(has_colours: bool, colour: Color) -> Style {
    if has_colours { Style::new().fg(colour) } else { Style::new() }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;
    use uuid::Uuid;

    use super::super::feed::Update;
    use super::*;

    fn fleet(count: u128) -> Model {
        let mut model = Model::new(Sort::Cpu);
        let server = |number| json!({"id": Uuid::from_u128(number), "name": format!("web-{number}"), "host": "h", "status": "online"});
        let state = |number: u128| {
            json!({"server_id": Uuid::from_u128(number), "status": "online", "cpu_percent": 100.0 - f64::from(u32::try_from(number).unwrap()) / 100.0,
                "memory_percent": 50.0, "network_in": 2048.0, "uptime_seconds": 90_000})
        };
        let parse = |value| serde_json::from_value(value).unwrap();
        model
            .apply(Update::Servers((0..count).map(|number| serde_json::from_value(server(number)).unwrap()).collect()));
        model.apply(Update::States((0..count).map(|number| parse(state(number))).collect()));
        model
    }

    fn screen(model: &mut Model) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(120, 8)).unwrap();
        terminal.draw(|frame| draw(frame, model, false)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |row: u16| (0..120).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        (0..8).map(|row| line(row).trim_end().to_owned()).collect()
    }

    #[test]
    fn the_visible_part_follows_the_mark() {
        let mut model = fleet(1000);

        let first = screen(&mut model);
        model.step(0);
        model.step(10);
        let later = screen(&mut model);

        assert_eq!(first[0], "1000 servers, 1000 online");
        assert!(first[1].contains("CPU ▼") && first[1].contains("CONTAINERS"), "{first:?}");
        assert!(first[2].starts_with("web-0 ") && first[2].contains("2.0 KiB") && first[2].contains("1d"), "{first:?}");
        assert!(later[2].starts_with("web-6 ") && later[6].starts_with("web-10 "), "{later:?}");
    }

    #[test]
    fn a_narrow_terminal_loses_the_last_columns() {
        assert_eq!([fitting(96), fitting(95), fitting(80), fitting(10)], [10, 9, 8, 1]);
    }

    #[test]
    fn a_fault_is_said_below_the_last_known_values() {
        let mut model = fleet(1);
        model.apply(Update::Lost("the connection was lost".to_owned()));

        let lines = screen(&mut model);

        assert!(lines[2].starts_with("web-0"), "{lines:?}");
        assert_eq!(lines[7], "the connection was lost; reconnecting");
    }
}
