//! The length of texts and their permitted characters.

use deserr::ValuePointerRef;
use signalbox_protocol::text::turns;

use super::fault::Faults;

/// A text of `least` to `most` characters without NUL, which PostgreSQL cannot store.
pub fn bounded(text: String, least: usize, most: usize, location: ValuePointerRef<'_>) -> Result<String, Faults> {
    let length = text.chars().count();
    if length < least {
        let msg = format!("ensure this value has at least {least} characters");
        return Err(Faults::at(location, "value_error.any_str.min_length", msg));
    }
    if length > most {
        let msg = format!("ensure this value has at most {most} characters");
        return Err(Faults::at(location, "value_error.any_str.max_length", msg));
    }
    if text.contains('\0') {
        return Err(Faults::at(location, "value_error.str.control", "ensure this value has no control characters"));
    }
    Ok(text)
}

/// A [`bounded`] text without control characters, and without characters that change the direction of text.
pub fn plain(text: String, least: usize, most: usize, location: ValuePointerRef<'_>) -> Result<String, Faults> {
    readable(bounded(text, least, most, location)?, &[], location)
}

/// A [`plain`] text that may have several lines.
pub fn prose(text: String, least: usize, most: usize, location: ValuePointerRef<'_>) -> Result<String, Faults> {
    readable(bounded(text, least, most, location)?, &['\n', '\r', '\t'], location)
}

fn readable(text: String, allowed: &[char], location: ValuePointerRef<'_>) -> Result<String, Faults> {
    if text.chars().any(|letter| letter.is_control() && !allowed.contains(&letter)) {
        return Err(Faults::at(location, "value_error.str.control", "ensure this value has no control characters"));
    }
    if text.chars().any(turns) {
        let msg = "ensure this value has no characters that change the direction of text";
        return Err(Faults::at(location, "value_error.str.bidi", msg));
    }
    Ok(text)
}

/// A [`plain`] text that is not blank.
pub fn line(text: String, least: usize, most: usize, location: ValuePointerRef<'_>) -> Result<String, Faults> {
    let text = plain(text, least, most, location)?;
    if least > 0 && text.trim().is_empty() {
        return Err(Faults::at(location, "value_error.any_str.blank", "ensure this value is not blank"));
    }
    Ok(text)
}

/// Patterns for [`bounded`], [`prose`], [`plain`] and [`line()`].
pub const TEXT: &str = r"^[^\u0000]*$";
pub const PROSE: &str = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]*$";
pub const LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]*$";
pub const FILLED_LINE: &str = concat!(
    r"^[^\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]*",
    r"[^\s\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]",
    r"[^\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]*$"
);
