//! The body between a dashboard's actor and its connection.
//!
//! actix-web-actors runs an actor inside the response's body: whatever wakes the connection polls the actor's mailbox,
//! all its timers and its reading, twice for each message. So texts that are the same for all subscribers bypass the
//! actor: this body takes them from the subscription, each already framed, and polls the actor only when something
//! happened that concerns it. The actor opens the tap once it has sent its first messages, and shuts it when it ends.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use futures_util::task::AtomicWaker;

use crate::feeds::{Text, Texts};

/// The actor's switch: whether texts bypass it.
#[derive(Clone, Default)]
pub struct Tap(Rc<RefCell<Option<Texts>>>);

impl Tap {
    pub fn is_open(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub fn open(&self, texts: Texts) {
        *self.0.borrow_mut() = Some(texts);
    }

    pub fn shut(&self) {
        *self.0.borrow_mut() = None;
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Bytes> {
        match self.0.borrow().as_ref() {
            Some(texts) => texts.poll_next(cx).map(Text::into_frame),
            // Only the actor opens the tap, so no waker is needed.
            None => Poll::Pending,
        }
    }
}

/// The body of a dashboard's connection.
pub struct Outlet {
    actor: BoxBody,
    tap: Tap,
    signal: Arc<Signal>,
    /// Raises the signal.
    waker: Waker,
}

/// Something happened that concerns the actor.
struct Signal {
    is_raised: AtomicBool,
    connection: AtomicWaker,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_raised.store(true, Ordering::SeqCst);
        self.connection.wake();
    }
}

impl Outlet {
    pub fn new(actor: BoxBody, tap: Tap) -> Self {
        // Raised, because an actor starts when it is polled.
        let signal = Arc::new(Signal { is_raised: AtomicBool::new(true), connection: AtomicWaker::new() });
        Self { actor, tap, waker: Waker::from(signal.clone()), signal }
    }
}

impl MessageBody for Outlet {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.actor.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let outlet = self.get_mut();
        outlet.signal.connection.register(cx.waker());
        // Lowered before the actor is polled, so that later events poll it again.
        if outlet.signal.is_raised.swap(false, Ordering::SeqCst) {
            let said = Pin::new(&mut outlet.actor).poll_next(&mut Context::from_waker(&outlet.waker));
            if said.is_ready() {
                // The actor may have more to send, or have ended.
                outlet.signal.is_raised.store(true, Ordering::SeqCst);
                return said;
            }
        }
        outlet.tap.poll(cx).map(|frame| Some(Ok(frame)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicUsize;

    use actix::{Actor, Handler};
    use uuid::Uuid;

    use super::*;
    use crate::feeds::{FeedFrame, Feeds, Subscription, Topic};

    const TOPIC: Topic = Topic::Server(Uuid::nil());

    /// A subscriber that is never polled.
    struct Sleeper;

    impl Actor for Sleeper {
        type Context = actix::Context<Self>;
    }

    impl Handler<crate::feeds::Wake> for Sleeper {
        type Result = ();

        fn handle(&mut self, _: crate::feeds::Wake, _: &mut Self::Context) {}
    }

    /// What an actor sends, how often it was polled, and its waker.
    #[derive(Clone, Default)]
    struct Speaker(Rc<RefCell<Speech>>);

    #[derive(Default)]
    struct Speech {
        says: VecDeque<Option<&'static str>>,
        polls: usize,
        waker: Option<Waker>,
    }

    impl Speaker {
        /// `None` ends it.
        fn say(&self, what: Option<&'static str>) {
            self.0.borrow_mut().says.push_back(what);
            let waker = self.0.borrow_mut().waker.take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    impl MessageBody for Speaker {
        type Error = std::convert::Infallible;

        fn size(&self) -> BodySize {
            BodySize::Stream
        }

        fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
            let mut speech = self.0.borrow_mut();
            speech.polls += 1;
            speech.waker = Some(cx.waker().clone());
            match speech.says.pop_front() {
                Some(said) => Poll::Ready(said.map(|text| Ok(Bytes::from_static(text.as_bytes())))),
                None => Poll::Pending,
            }
        }
    }

    #[derive(Default)]
    struct CountingWake(AtomicUsize);

    impl Wake for CountingWake {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct Scene {
        feeds: Feeds,
        subscription: Subscription,
        tap: Tap,
        speaker: Speaker,
        outlet: Outlet,
        bell: Arc<CountingWake>,
    }

    impl Scene {
        fn new() -> Self {
            let (feeds, tap, speaker) = (Feeds::default(), Tap::default(), Speaker::default());
            Self {
                subscription: feeds.subscribe(vec![TOPIC], Sleeper.start().recipient()),
                outlet: Outlet::new(BoxBody::new(speaker.clone()), tap.clone()),
                bell: Arc::default(),
                feeds,
                tap,
                speaker,
            }
        }

        fn publish(&self, text: &str) {
            self.feeds.publish(TOPIC, FeedFrame::Event(text.into()));
        }

        /// What the connection sends until nothing is left, and whether the body has ended.
        fn written(&mut self) -> (Vec<u8>, bool) {
            let waker = Waker::from(self.bell.clone());
            let mut written = Vec::new();
            loop {
                match Pin::new(&mut self.outlet).poll_next(&mut Context::from_waker(&waker)) {
                    Poll::Pending => return (written, false),
                    Poll::Ready(None) => return (written, true),
                    Poll::Ready(Some(chunk)) => written.extend_from_slice(&chunk.unwrap()),
                }
            }
        }

        fn rings(&self) -> usize {
            self.bell.0.load(Ordering::SeqCst)
        }
    }

    #[actix::test]
    async fn texts_bypass_the_actor_once_it_opens_the_tap() {
        let mut scene = Scene::new();
        scene.speaker.say(Some("first,"));
        scene.publish("early");
        assert_eq!(scene.written(), (b"first,".to_vec(), false));
        let polls = scene.speaker.0.borrow().polls;

        scene.tap.open(scene.subscription.texts());
        assert_eq!(scene.written(), (b"\x81\x05early".to_vec(), false));
        let before = scene.rings();
        scene.publish("one");
        scene.publish("two");

        assert_eq!(scene.rings(), before + 1);
        assert_eq!(scene.written(), (b"\x81\x03one\x81\x03two".to_vec(), false));
        assert_eq!(scene.speaker.0.borrow().polls, polls);
    }

    #[actix::test]
    async fn the_actors_output_wakes_the_connection_and_its_end_ends_it() {
        let mut scene = Scene::new();
        scene.tap.open(scene.subscription.texts());
        assert_eq!(scene.written(), (Vec::new(), false));

        scene.publish("text");
        scene.speaker.say(Some("said,"));
        assert_eq!(scene.written(), (b"said,\x81\x04text".to_vec(), false));
        let before = scene.rings();
        scene.tap.shut();
        scene.publish("late");
        scene.speaker.say(Some("bye"));
        scene.speaker.say(None);

        assert!(scene.rings() > before);
        assert_eq!(scene.written(), (b"bye".to_vec(), true));
    }
}
