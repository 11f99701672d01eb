//! Agents that send a sample at fixed intervals to any instance that accepts it, as the real one does: what was not
//! acknowledged is sent again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use actix_web::rt::{self, task::JoinHandle};
use signalbox_protocol::agent::{AgentMessage, Metrics, ServiceMessage};
use signalbox_protocol::codec::Message as _;
use signalbox_protocol::{Decoded, Encoding, Sample, Timestamp};
use tokio::sync::watch;
use uuid::Uuid;

use super::Scene;
use crate::support::agent::{AGENT_PATH, auth, encode};
use crate::support::alerts::busy;
use crate::support::eventually;
use crate::support::socket::{Received, Socket};

/// The interval of samples.
const EVERY: Duration = Duration::from_millis(100);

/// The pause before another instance is tried.
const PAUSE: Duration = Duration::from_millis(100);

/// Samples that may wait for their acknowledgement: those of half a minute.
const MAX_WAITING: usize = 300;

/// A connection that broke without a close frame (RFC 6455, 7.1.5).
pub const BROKEN: u16 = 1006;

/// One agent, in the background.
pub struct Stream {
    pub server_id: Uuid,
    wish: watch::Sender<Wish>,
    told: Rc<RefCell<AgentReport>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy)]
struct Wish {
    cpu_percent: f64,
    is_over: bool,
}

/// The result of an agent.
#[derive(Debug, Default)]
pub struct AgentReport {
    /// The moments of the samples that were acknowledged.
    pub acknowledged: Vec<String>,
    /// How its connections ended.
    pub ends: Vec<u16>,
    /// Where it is connected.
    pub place: Option<SocketAddr>,
}

impl Stream {
    /// Begins at the first of these addresses, and continues at the next whenever a connection ends.
    pub fn start(addresses: Vec<SocketAddr>, server_id: Uuid, key: String) -> Self {
        let (wish, wished) = watch::channel(Wish { cpu_percent: 10.0, is_over: false });
        let told = Rc::new(RefCell::new(AgentReport::default()));
        let agent = Agent { key, wished, told: told.clone(), seq: 0, last: Timestamp::now(), waiting: BTreeMap::new() };
        Self { server_id, wish, told, task: rt::spawn(agent.run(addresses)) }
    }

    /// Sets the value of its samples from now on.
    pub fn cpu(&self, percent: f64) {
        self.wish.send_modify(|wish| wish.cpu_percent = percent);
    }

    pub fn place(&self) -> Option<SocketAddr> {
        self.told.borrow().place
    }

    pub fn acknowledged(&self) -> usize {
        self.told.borrow().acknowledged.len()
    }

    pub fn ends(&self) -> Vec<u16> {
        self.told.borrow().ends.clone()
    }

    /// Waits until this many more samples are acknowledged.
    pub async fn go_on(&self, count: usize) {
        let goal = self.acknowledged() + count;
        eventually("samples are acknowledged", async || (self.acknowledged() >= goal).then_some(())).await;
    }

    /// Waits until it is connected, and not there.
    pub async fn until_away_from(&self, address: SocketAddr) {
        eventually("an agent is elsewhere", async || self.place().filter(|place| *place != address)).await;
    }

    /// Ends it as soon as everything is acknowledged.
    pub async fn stop(self) -> AgentReport {
        self.wish.send_modify(|wish| wish.is_over = true);
        eventually("everything is acknowledged", async || self.task.is_finished().then_some(())).await;
        self.task.await.unwrap();
        self.told.take()
    }
}

struct Agent {
    key: String,
    wished: watch::Receiver<Wish>,
    told: Rc<RefCell<AgentReport>>,
    seq: u64,
    last: Timestamp,
    waiting: BTreeMap<u64, Sample>,
}

impl Agent {
    async fn run(mut self, addresses: Vec<SocketAddr>) {
        for address in addresses.iter().cycle() {
            if let Some(socket) = Socket::attempt(*address, AGENT_PATH).await {
                let Some(code) = self.stay(*address, socket).await else { return };
                let mut told = self.told.borrow_mut();
                told.place = None;
                told.ends.push(code);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends until the connection ends, and returns how; none when there is nothing left to do.
    async fn stay(&mut self, address: SocketAddr, mut socket: Socket) -> Option<u16> {
        if socket.try_send(encode(Encoding::MessagePack, &auth(&self.key))).await.is_err() {
            return Some(BROKEN);
        }
        let mut ticks = tokio::time::interval(EVERY);
        let mut is_in = false;
        loop {
            let wish = *self.wished.borrow();
            if wish.is_over && self.waiting.is_empty() {
                socket.close().await;
                return None;
            }
            let has_room = is_in && !wish.is_over && self.waiting.len() < MAX_WAITING;
            tokio::select! {
                received = socket.receive() => match received {
                    Received::Closed(code) => return Some(code),
                    Received::Broken => return Some(BROKEN),
                    Received::Message(message) => match decode(&message.into_data()) {
                        ServiceMessage::AuthResponse(answer) => {
                            if !answer.success {
                                let is_passing = matches!(answer.code.as_deref(), Some("restarting" | "overloaded"));
                                assert!(is_passing, "the key was refused: {answer:?}");
                                // The close that says so follows.
                                continue;
                            }
                            is_in = true;
                            self.told.borrow_mut().place = Some(address);
                            for (seq, sample) in &self.waiting {
                                if !send(&mut socket, *seq, sample.clone()).await {
                                    return Some(BROKEN);
                                }
                            }
                        }
                        ServiceMessage::Ack { seq } => self.acknowledge(seq),
                        _ => {}
                    },
                },
                _ = ticks.tick(), if has_room => {
                    let (seq, sample) = self.next(wish.cpu_percent);
                    if !send(&mut socket, seq, sample).await {
                        return Some(BROKEN);
                    }
                }
                // Checks again whether it is over.
                () = tokio::time::sleep(EVERY), if !has_room => {}
            }
        }
    }

    fn next(&mut self, cpu_percent: f64) -> (u64, Sample) {
        self.seq += 1;
        self.last = Timestamp::now().max(self.last.plus_millis(1));
        let sample = busy(self.last, cpu_percent);
        self.waiting.insert(self.seq, sample.clone());
        (self.seq, sample)
    }

    fn acknowledge(&mut self, seq: u64) {
        let rest = self.waiting.split_off(&(seq + 1));
        let done = std::mem::replace(&mut self.waiting, rest);
        let moments = done.values().map(|sample| sample.timestamp.to_string());
        self.told.borrow_mut().acknowledged.extend(moments);
    }
}

async fn send(socket: &mut Socket, seq: u64, sample: Sample) -> bool {
    let message = AgentMessage::Metrics(Metrics { seq, samples: vec![sample], sent_at: None });
    socket.try_send(encode(Encoding::MessagePack, &message)).await.is_ok()
}

fn decode(bytes: &[u8]) -> ServiceMessage {
    match Encoding::MessagePack.decode(bytes).unwrap() {
        Decoded::Known(message) => message,
        Decoded::Unknown => panic!("not one of {:?}", ServiceMessage::TYPES),
    }
}

impl Scene {
    /// Servers of the account whose agents send, the first at this instance, the second at the next, and so on.
    pub async fn streams(&self, count: usize, first: usize) -> Vec<Stream> {
        let mut streams = Vec::new();
        for number in 0..count {
            let (id, key) = self.another(&format!("loaded-{number}")).await;
            let mut addresses = self.cluster.addresses();
            addresses.rotate_left((first + number) % self.cluster.count());
            streams.push(Stream::start(addresses, id, key));
        }
        streams
    }

    /// One server of the account whose agent sends to one instance and no other.
    pub async fn stream_at(&self, instance: usize) -> Stream {
        let (id, key) = self.another(&format!("only-at-{instance}")).await;
        let stream = Stream::start(vec![self.cluster.address(instance)], id, key);
        stream.go_on(1).await;
        stream
    }

    /// Asserts that an instance has every sample that was acknowledged, and each once.
    pub async fn expect_whole(&self, instance: usize, server_id: Uuid, told: &AgentReport) {
        let moments = self.moments(instance, server_id).await;
        let there: BTreeSet<_> = moments.iter().collect();
        let acknowledged: BTreeSet<_> = told.acknowledged.iter().collect();
        assert_eq!(there.len(), moments.len(), "a sample is there twice");
        let lost: Vec<_> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "{} of {} are not at {instance}: {lost:?}", lost.len(), acknowledged.len());
        // Those that arrived and were not acknowledged were sent again, so there are no others.
        let more: Vec<_> = there.difference(&acknowledged).collect();
        assert!(more.is_empty(), "{} more than {} are at {instance}: {more:?}", more.len(), acknowledged.len());
    }
}
