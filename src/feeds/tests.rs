use std::future::poll_fn;
use std::task::Waker;

use actix::{Actor, Context, Handler};
use futures_util::future::join;

use super::queue::{MAX_EVENTS, MAX_METRICS};
use super::*;

/// An actor that never takes its frames.
struct Sleeper;

impl Actor for Sleeper {
    type Context = Context<Self>;
}

impl Handler<Wake> for Sleeper {
    type Result = ();

    fn handle(&mut self, _: Wake, _: &mut Self::Context) {}
}

fn text(frame: &FeedFrame) -> String {
    match frame {
        FeedFrame::Metrics(text) | FeedFrame::Event(text) => text.text().to_string(),
        FeedFrame::Notice => "notice".to_owned(),
        FeedFrame::Rights => "rights".to_owned(),
    }
}

#[actix::test]
async fn a_slow_reader_loses_the_oldest_metrics_and_no_event() {
    let feeds = Feeds::default();
    let topic = Topic::Server(Uuid::nil());
    let subscription = feeds.subscribe(vec![topic], Sleeper.start().recipient());

    feeds.publish(topic, FeedFrame::Event("event".into()));
    for number in 0..MAX_METRICS + 5 {
        feeds.publish(topic, FeedFrame::Metrics(number.to_string().into()));
    }
    let (frames, closing) = subscription.take();

    assert_eq!(frames.len(), MAX_METRICS + 1);
    assert_eq!(frames.front().map(text), Some("event".to_owned()));
    assert_eq!(frames.get(1).map(text), Some("5".to_owned()));
    assert_eq!(frames.back().map(text), Some((MAX_METRICS + 4).to_string()));
    assert_eq!(closing, None);
}

#[actix::test]
async fn a_burst_of_events_reaches_its_reader_whole() {
    let feeds = Feeds::default();
    let topic = Topic::Alerts(Uuid::nil());
    let subscription = feeds.subscribe(vec![topic], Sleeper.start().recipient());

    for number in 0..MAX_EVENTS {
        feeds.publish(topic, FeedFrame::Event(number.to_string().into()));
    }
    let (frames, closing) = subscription.take();

    let expected: Vec<String> = (0..MAX_EVENTS).map(|number| number.to_string()).collect();
    assert_eq!(frames.iter().map(text).collect::<Vec<_>>(), expected);
    assert_eq!(closing, None);
}

#[actix::test]
async fn a_reader_that_would_miss_an_event_is_closed() {
    let feeds = Feeds::default();
    let topic = Topic::Alerts(Uuid::nil());
    let by_number = feeds.subscribe(vec![topic], Sleeper.start().recipient());
    for number in 0..=MAX_EVENTS {
        feeds.publish(topic, FeedFrame::Event(number.to_string().into()));
    }
    let by_bytes = feeds.subscribe(vec![topic], Sleeper.start().recipient());
    for _ in 0..3 {
        feeds.publish(topic, FeedFrame::Event("x".repeat(1_000_000).into()));
    }

    for subscription in [by_number, by_bytes] {
        let (frames, closing) = subscription.take();
        assert!(frames.is_empty());
        assert_eq!(closing, Some(Closing::TooSlow));
    }
}

#[actix::test]
async fn a_notice_waits_once_however_often_it_is_published() {
    let feeds = Feeds::default();
    let topic = Topic::Servers(Uuid::nil());
    let subscription = feeds.subscribe(vec![topic], Sleeper.start().recipient());

    for frame in [FeedFrame::Notice, FeedFrame::Notice, FeedFrame::Event("other".into()), FeedFrame::Notice] {
        feeds.publish(topic, frame);
    }
    let first = subscription.take().0;
    feeds.publish(topic, FeedFrame::Notice);

    assert_eq!(first.iter().map(text).collect::<Vec<_>>(), ["notice", "other"]);
    assert_eq!(subscription.take().0.len(), 1);
}

#[actix::test]
async fn a_socket_without_its_actor_takes_texts_in_order_and_leaves_the_rest() {
    let feeds = Feeds::default();
    let topic = Topic::Server(Uuid::nil());
    let subscription = feeds.subscribe(vec![topic], Sleeper.start().recipient());
    let texts = subscription.texts();
    let next = || match texts.poll_next(&std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(text) => Some(text.text().to_string()),
        Poll::Pending => None,
    };

    for frame in [FeedFrame::Notice, FeedFrame::Event("event".into()), FeedFrame::Metrics("metrics".into())] {
        feeds.publish(topic, frame);
    }

    assert_eq!([next(), next(), next()], [Some("event".to_owned()), Some("metrics".to_owned()), None]);
    assert_eq!(subscription.take().0.iter().map(text).collect::<Vec<_>>(), ["notice"]);
}

#[actix::test]
async fn a_waiting_socket_is_woken_for_metrics_close_together() {
    let feeds = Feeds::default();
    let topic = Topic::Server(Uuid::nil());
    let subscription = feeds.subscribe(vec![topic], Sleeper.start().recipient());
    let texts = subscription.texts();
    let numbers: Vec<String> = (0..20).map(|number| number.to_string()).collect();

    let reading = async {
        let mut read = Vec::new();
        while read.len() < numbers.len() {
            read.push(poll_fn(|cx| texts.poll_next(cx)).await.text().to_string());
        }
        read
    };
    let publishing = async {
        for number in &numbers {
            feeds.publish(topic, FeedFrame::Metrics(number.as_str().into()));
            tokio::task::yield_now().await;
        }
    };
    let both = join(reading, publishing);
    let (read, ()) = tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();

    assert_eq!(read, numbers);
}

#[actix::test]
async fn a_dropped_subscription_leaves_its_topics() {
    let feeds = Feeds::default();
    let topics = vec![Topic::Service, Topic::Login(Uuid::nil())];
    let subscription = feeds.subscribe(topics, Sleeper.start().recipient());
    assert!(feeds.is_watched(Topic::Service));

    drop(subscription);

    assert!(!feeds.is_watched(Topic::Service));
    assert!(!feeds.is_watched(Topic::Login(Uuid::nil())));
}

#[actix::test]
async fn closing_reaches_only_the_subscribers_of_the_topic() {
    let feeds = Feeds::default();
    let (watched, other) = (Topic::Server(Uuid::from_u128(1)), Topic::Server(Uuid::from_u128(2)));
    let hit = feeds.subscribe(vec![watched], Sleeper.start().recipient());
    let spared = feeds.subscribe(vec![other], Sleeper.start().recipient());

    feeds.close(watched, Closing::ServerDeleted);

    assert_eq!(hit.take().1, Some(Closing::ServerDeleted));
    assert_eq!(spared.take().1, None);
}

#[actix::test]
async fn the_watched_servers_are_those_with_subscribers() {
    let feeds = Feeds::default();
    let (watched, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let topics = vec![Topic::Server(watched), Topic::Alerts(other), Topic::Service];

    let subscription = feeds.subscribe(topics, Sleeper.start().recipient());
    let while_subscribed = feeds.watched_metrics();
    drop(subscription);

    assert_eq!(while_subscribed, HashSet::from([watched]));
    assert!(feeds.watched_metrics().is_empty());
}
