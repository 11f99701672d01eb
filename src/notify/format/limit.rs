//! Fits lines into the size limit of a service.

/// How a service measures a text.
pub type Measure = fn(&str) -> usize;

/// The length in UTF-16 code units, which is at least the number of characters that a service counts.
pub fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

pub fn bytes(text: &str) -> usize {
    text.len()
}

/// How much text a service accepts.
#[derive(Clone, Copy)]
pub struct Room {
    pub measure: Measure,
    pub size: usize,
    pub lines: usize,
}

/// Returns as many lines as fit. If some are left out, the last line says how many.
pub fn fit(lines: Vec<String>, room: Room) -> Vec<String> {
    let total = lines.len();
    let sizes: Vec<usize> = lines.iter().map(|line| (room.measure)(line) + 1).collect();
    if total <= room.lines && sizes.iter().sum::<usize>() <= room.size {
        return lines;
    }
    // The last line is longest when it counts all lines.
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

/// Returns the first `length` characters of `text`, with an ellipsis as the last one if it was cut. `length` is at least 1.
pub fn cut(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let mut beginning: String = text.chars().take(length - 1).collect();
    beginning.push('…');
    beginning
}
