//! Fitting lines into what a service takes.

/// How a service measures a text.
pub type Measure = fn(&str) -> usize;

/// In UTF-16, which is never less than the characters that services count.
pub fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

pub fn bytes(text: &str) -> usize {
    text.len()
}

/// What a service takes of a text.
#[derive(Clone, Copy)]
pub struct Room {
    pub measure: Measure,
    pub size: usize,
    pub lines: usize,
}

/// As many lines as there is room for; what is left out is counted in a line of its own.
pub fn fit(lines: Vec<String>, room: Room) -> Vec<String> {
    let total = lines.len();
    let sizes: Vec<usize> = lines.iter().map(|line| (room.measure)(line) + 1).collect();
    if total <= room.lines && sizes.iter().sum::<usize>() <= room.size {
        return lines;
    }
    // All of them left out is the longest that the last line can be.
    let mut left = room.size.saturating_sub((room.measure)(&left_out(total)) + 1);
    let fitting = sizes.iter().take(room.lines.saturating_sub(1)).take_while(|size| {
        let fits = **size <= left;
        left = left.saturating_sub(**size);
        fits
    });
    let kept = fitting.count();
    let mut kept_lines: Vec<String> = lines.into_iter().take(kept).collect();
    kept_lines.push(left_out(total - kept));
    kept_lines
}

fn left_out(count: usize) -> String {
    format!("… and {count} more")
}

/// The beginning of `text`, with a mark where it was cut. `length` is at least 1.
pub fn cut(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let mut beginning: String = text.chars().take(length - 1).collect();
    beginning.push('…');
    beginning
}
