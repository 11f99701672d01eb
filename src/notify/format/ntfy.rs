//! ntfy, published as JSON, because its headers do not support UTF-8. <https://docs.ntfy.sh/publish/#publish-as-json>

use reqwest::Url;
use serde_json::json;

use super::limit::{Room, bytes, fit};
use super::text::{MessageText, Tone};
use super::{Request, Unfit};

/// ntfy turns a message of more than 4,096 bytes into an attachment, and accepts a JSON body of at most twice that size.
const ROOM: Room = Room { measure: bytes, size: 3_400, lines: 100 };

/// ntfy accepts topics that match `^[-_A-Za-z0-9]{1,64}$`.
const MAX_TOPIC: usize = 64;

/// Returns the topic, which is the last segment of the URL.
pub fn topic_of(url: &str) -> Result<String, Unfit> {
    split(url).map(|(_, topic)| topic)
}

/// Splits a URL into the server's URL and the topic.
fn split(url: &str) -> Result<(Url, String), Unfit> {
    let mut server = Url::parse(url).map_err(|_| Unfit::Url)?;
    let mut segments: Vec<String> = server.path_segments().ok_or(Unfit::Url)?.map(str::to_owned).collect();
    if segments.last().is_some_and(String::is_empty) {
        segments.pop();
    }
    let topic = segments.pop().filter(|topic| is_topic(topic)).ok_or(Unfit::Topic)?;
    segments.push(String::new());
    server.set_path(&segments.join("/"));
    Ok((server, topic))
}

fn is_topic(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_TOPIC).contains(&text.len()) && text.bytes().all(fits)
}

/// `url` is the topic's. The request goes to the server's root, and its JSON names the topic.
pub fn request(url: &str, token: Option<&str>, told: &MessageText) -> Result<Request, Unfit> {
    let (server, topic) = split(url)?;
    let mut body = json!({
        "topic": topic,
        "title": told.headline,
        "message": fit(told.lines.iter().map(|line| line.text.clone()).collect(), ROOM).join("\n"),
        "priority": priority(told.tone),
        "tags": [tag(told.tone)],
    });
    if let (Some(link), Some(body)) = (&told.link, body.as_object_mut()) {
        body.insert("click".to_owned(), json!(link));
    }
    let mut request = Request::to(server, &body);
    request.secrets = token.map(|token| ("Authorization", format!("Bearer {token}"))).into_iter().collect();
    Ok(request)
}

/// ntfy's priorities are 1 to 5, by default 3.
fn priority(tone: Tone) -> u8 {
    match tone {
        Tone::Test | Tone::Resolved | Tone::Info => 3,
        Tone::Warning => 4,
        Tone::Critical => 5,
    }
}

/// The short code of an emoji, which ntfy shows before the title.
fn tag(tone: Tone) -> &'static str {
    match tone {
        Tone::Test => "bell",
        Tone::Resolved => "white_check_mark",
        Tone::Info => "information_source",
        Tone::Warning => "warning",
        Tone::Critical => "rotating_light",
    }
}
