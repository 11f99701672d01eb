//! The text that people read.

use super::*;
use crate::store::SCHEDULE;

fn lines(message: &Message) -> Vec<String> {
    told(message).lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn a_message_names_the_server_once() {
    let message = message(vec![
        triggered("warning", "web-1", "disk / is 93 % full on web-1"),
        triggered("warning", "db-1", "disk / is 93 % full"),
    ]);

    assert_eq!(lines(&message), ["disk / is 93 % full on web-1", "db-1: disk / is 93 % full"]);
}

#[test]
fn a_reminder_says_for_how_long_the_alert_is_active() {
    let message = message(vec![item(Event::Reminder, "critical", "web-1", "web-1 has been offline for 2 min")]);

    assert_eq!(told(&message).headline, "Still critical: web-1");
    assert_eq!(lines(&message), ["Active for 35 min: web-1 has been offline for 2 min"]);
}

#[test]
fn a_resolved_alert_says_how_it_ended() {
    let ended = |by: &str| lines(&message(vec![resolved("web-1", "swap is 80 % on web-1", by)])).remove(0);

    assert_eq!(ended("recovery"), "Recovered after 12 min: swap is 80 % on web-1");
    assert_eq!(ended("threshold_deleted"), "Threshold removed after 12 min: swap is 80 % on web-1");
    assert_eq!(ended(&Uuid::nil().to_string()), "Resolved manually after 12 min: swap is 80 % on web-1");
}

#[test]
fn the_end_of_a_schedules_alert_names_no_threshold() {
    let mut item = resolved("web-1", "backup: ended with exit code 1 on web-1", "threshold_deleted");
    item.alert.as_mut().unwrap().metric_type = SCHEDULE.to_owned();

    let said = lines(&message(vec![item])).remove(0);

    assert_eq!(said, "Schedule ended or paused after 12 min: backup: ended with exit code 1 on web-1");
}

#[test]
fn a_recovery_looks_unlike_an_alert() {
    let told = told(&message(vec![resolved("web-1", "x", "recovery")]));

    assert_eq!((told.tone, told.headline.as_str()), (Tone::Resolved, "Resolved: web-1"));
}

#[test]
fn a_test_says_that_it_is_one() {
    let message = message(vec![test_item()]);
    let told = MessageText::new(&message, Some(PUBLIC_URL));

    assert_eq!(told.headline, "Test message from Signalbox");
    assert_eq!(told.link, None);
    assert_eq!(lines(&message), ["This is a test message for the channel “Night shift”. Alerts will look like this."]);
}

#[test]
fn a_group_shows_its_counts_and_the_highest_severity() {
    let headline = |items: Vec<Item>| {
        let told = told(&message(items));
        (told.tone, told.headline)
    };
    let (a, b) = (triggered("warning", "a", "x"), triggered("critical", "b", "x"));
    let (ended, again) = (resolved("a", "x", "recovery"), item(Event::Reminder, "info", "a", "x"));

    let of = |tone: Tone, text: &str| (tone, text.to_owned());
    assert_eq!(headline(vec![a.clone(), b.clone()]), of(Tone::Critical, "Critical: 2 alerts on 2 servers"));
    assert_eq!(headline(vec![a.clone(), again]), of(Tone::Warning, "Warning: 2 alerts on a"));
    assert_eq!(headline(vec![ended.clone(), a]), of(Tone::Warning, "Warning: 1 alert on a, 1 resolved"));
    assert_eq!(headline(vec![ended.clone(), ended]), of(Tone::Resolved, "2 alerts resolved on a"));
}

#[test]
fn links_need_the_public_url() {
    let (one, two) = (one(), message(vec![triggered("info", "a", "x"), triggered("info", "a", "x")]));

    assert_eq!(MessageText::new(&one, None).link, None);
    assert_eq!(MessageText::new(&two, None).link, None);
    let of = |message: &Message, url: &str| MessageText::new(message, Some(url)).link.unwrap();
    assert_eq!(of(&one, "https://a.example"), format!("https://a.example/alerts/{ALERT}"));
    assert_eq!(of(&one, "https://a.example/"), format!("https://a.example/alerts/{ALERT}"));
    assert_eq!(of(&two, "https://a.example/sub"), "https://a.example/sub/alerts");
}

#[test]
fn durations_are_rounded_down_to_one_unit() {
    let span = |seconds: i64| {
        let mut item = resolved("a", "a", "recovery");
        let alert = item.alert.as_mut().unwrap();
        alert.resolved_at = Some(alert.triggered_at.plus_millis(seconds * 1000));
        lines(&message(vec![item])).remove(0)
    };

    for (seconds, text) in
        [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3_599, "59 min"), (3_600, "1 h"), (172_800, "2 days")]
    {
        assert_eq!(span(seconds), format!("Recovered after {text}: a"));
    }
}
