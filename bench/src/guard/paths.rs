//! The hot paths, one by one.

use std::hint::black_box;

use serde_json::Value;
use signalbox::alert_words::Comparison;
use signalbox::alerts::rule::{self, Phase, Rule};
use signalbox::feeds::{FeedFrame, Topic};
use signalbox::ingest::{ArrivalTime, Source, metrics_message};
use signalbox::metrics::archive::prepare;
use signalbox::metrics::described::Described;
use signalbox::metrics::recorder::NewSample;
use signalbox::store::history::PieceInfo;
use signalbox_agent::guard::Sampling;
use signalbox_protocol::agent::{AgentMessage, CommandResult, CommandStatus, Metrics};
use signalbox_protocol::{Decoded, Encoding, Timestamp};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::callgrind::{ROUNDS, count};
use crate::client::{Http, Socket, id_in, request, says};
use crate::machine::Machine;
use crate::runtime;
use crate::samples::{new_sample, sample};
use crate::service::Service;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Dashboards of one server.
const DASHBOARDS: usize = 500;

/// Samples of one batch: as many as the recorder waits for under load.
const BATCH: u128 = 512;

/// Steps of a rule: a multiple of the time in which its values come again.
const STEPS: usize = 2_048;

pub fn count_all() {
    let runtime = runtime();
    // First, while there are no threads of a service, whose timers would be counted, too: on a machine without a free processor that
    // was a third of a rule's step.
    rule_step();
    sampling(&runtime);
    let service = Service::start();
    let (server_id, _) = service.server("watched");
    let history = History::make(&service, &runtime, server_id);
    accept(&service, server_id);
    latest(&service, server_id);
    series(&service, server_id, history.day_ms);
    seal(&service, &runtime, server_id, history.hour);
    publish(&service, server_id);
    command();
    commit(&service, &runtime);
}

/// A server's stored history.
struct History {
    /// A day that is sealed: when it began.
    day_ms: i64,
    /// An hour whose samples are all in pieces.
    hour: i64,
}

impl History {
    /// A day of a sample a minute, and an hour of a sample each 5 s.
    fn make(service: &Service, runtime: &Runtime, server_id: Uuid) -> Self {
        let now_ms = Timestamp::now().as_millis();
        let day_ms = (now_ms.div_euclid(DAY) - 2) * DAY;
        // Not the current one, which may end before it is read and would then be sealed.
        let hour = now_ms.div_euclid(HOUR) + 1;
        let day = (0_u64..).zip((day_ms..day_ms + DAY).step_by(MINUTE as usize));
        let samples = (0_u64..).zip((hour * HOUR..(hour + 1) * HOUR).step_by(5 * SECOND as usize));
        let all = day.chain(samples).map(|(index, at)| new_sample(&service.state.metrics.tail, server_id, at, index));
        service.record(all.collect());
        runtime.block_on(service.state.metrics.recorder.flush()).unwrap();
        runtime.block_on(service.state.metrics.archive.settle()).unwrap();
        Self { day_ms, hour }
    }
}

/// A sample is read, checked, shown and made ready to be kept.
fn accept(service: &Service, server_id: Uuid) {
    const TIMES: usize = 20;
    let (source, mut described) = (Source { server_id, owner_id: service.owner_id }, Described::default());
    let now_ms = Timestamp::now().as_millis();
    // Each is newer than the previous one, and none is of the future.
    let message = |index: usize| {
        let taken = sample(now_ms - 10 * SECOND + index as i64, index as u64);
        let sent_at = Some(taken.timestamp);
        let metrics = Metrics { seq: index as u64, samples: vec![taken], sent_at };
        Encoding::MessagePack.encode(&AgentMessage::Metrics(metrics)).unwrap()
    };
    let messages: Vec<_> = (0..TIMES * (ROUNDS + 1)).map(message).collect();
    let mut next = messages.iter();
    count("accept-sample", ROUNDS, TIMES, || {
        let decoded = Encoding::MessagePack.decode::<AgentMessage>(next.next().unwrap()).unwrap();
        let Decoded::Known(AgentMessage::Metrics(metrics)) = decoded else { panic!("not understood") };
        let moment = ArrivalTime { now: Timestamp::now(), offset_ms: 0 };
        let accepted = service.state.metrics.pipeline.accept(source, metrics, &mut described, moment);
        assert!(accepted.is_ok_and(|batch| batch.is_live), "a sample of now");
    });
}

/// `GET /metrics/{id}`
fn latest(service: &Service, server_id: Uuid) {
    ask(service, "read-metrics", 20, &format!("/metrics/{server_id}"));
}

/// One series of a day, a point a minute.
fn series(service: &Service, server_id: Uuid, day_ms: i64) {
    let [start, end] = [day_ms, day_ms + DAY - 1].map(Timestamp::from_millis);
    let query = format!("start={start}&end={end}&resolution=1m&names=cpu_percent");
    let answer = ask(service, "read-series-day", 4, &format!("/metrics/{server_id}/series?{query}"));
    let points = answer["timestamps"].as_array().map_or(0, Vec::len);
    assert!(points >= 24 * 60, "{points} points");
}

/// Asks the same again and again, through the whole of HTTP. All answers have the same length.
fn ask(service: &Service, name: &str, times: usize, path: &str) -> Value {
    let mut http = Http::connect(service.address);
    let question = request("GET", path, Some(&service.token), "");
    let first = http.ask(&question);
    count(name, ROUNDS, times, || {
        http.send(&question);
        http.pass_over(first.bytes);
    });
    serde_json::from_slice(&first.body).unwrap()
}

/// An hour of 720 samples becomes blocks, which are not written.
fn seal(service: &Service, runtime: &Runtime, server_id: Uuid, hour: i64) {
    let hours = [PieceInfo { server_id, hour, samples: 720, cells: 0 }];
    count("seal-hour", ROUNDS, 1, || {
        let prepared = runtime.block_on(prepare(&service.state.store, server_id, &hours));
        assert!(prepared.is_ok_and(|work| !work.sealing.blocks.is_empty()), "an hour has blocks");
    });
}

/// One message reaches all dashboards.
fn publish(service: &Service, server_id: Uuid) {
    let mut buffer = Vec::new();
    let mut dashboards: Vec<Socket> = (0..DASHBOARDS).map(|_| service.dashboard(server_id, &mut buffer)).collect();
    let snapshot = service.state.fleet.latest(server_id).unwrap();
    let message = metrics_message(&snapshot);
    let text: &str = &message;
    // Each received the same when it connected.
    for dashboard in &mut dashboards {
        dashboard.until(&mut buffer, |frame| frame == text.as_bytes());
    }
    count("publish-to-500", 2 * ROUNDS, 1, || {
        service.state.feeds.publish(Topic::Server(server_id), FeedFrame::Metrics(message.clone().into()));
        for dashboard in &mut dashboards {
            dashboard.until(&mut buffer, |frame| frame == text.as_bytes());
        }
    });
}

/// From the request that runs it to the agent, back, and into the answer. By a service of its own, so that it costs as much when
/// nothing else is counted.
pub fn command() {
    let service = Service::start();
    let (server_id, key) = service.server("commanded");
    let mut buffer = Vec::new();
    let mut agent = service.agent(&key, &mut buffer);
    let mut http = Http::connect(service.address);
    let order = request("POST", &format!("/commands/{server_id}"), Some(&service.token), r#"{"command":"true"}"#);
    count("run-command", 4 * ROUNDS, 1, || {
        http.send(&order);
        let length = agent.until(&mut buffer, says("\"execute\""));
        let result = AgentMessage::CommandResult(CommandResult {
            command_id: id_in(&buffer[..length], "command_id"),
            status: CommandStatus::Succeeded.name().to_owned(),
            exit_code: Some(0),
            duration_ms: 12,
            truncated: false,
        });
        agent.say(&Encoding::Json.encode(&result).unwrap());
        agent.until(&mut buffer, says("\"result_ack\""));
        http.answer();
    });
}

/// Samples of many servers are written together, and their sessions notified.
fn commit(service: &Service, runtime: &Runtime) {
    let one = new_sample(&service.state.metrics.tail, Uuid::from_u128(1), Timestamp::now().as_millis(), 1);
    let of = |server| NewSample { server_id: Uuid::from_u128(server), ..one.clone() };
    let batch: Vec<NewSample> = (1..=BATCH).map(of).collect();
    count("commit-batch", 2 * ROUNDS, 1, || {
        batch.iter().for_each(|sample| service.record(vec![sample.clone()]));
        runtime.block_on(service.settle());
    });
}

/// Values that cross for long enough, and recover.
fn rule_step() {
    let rule = Rule { comparison: Comparison::Gt, threshold: 80.0, clear: Some(70.0), duration_ms: MINUTE };
    let (mut state, mut step) = (rule::State::new(Phase::Clear, None), 0);
    count("rule-step", ROUNDS, STEPS, || {
        let value = if step % 64 < 40 { 20.0 } else { 90.0 };
        black_box(state.live(&rule, step * 5 * SECOND, value));
        step += 1;
    });
}

/// The agent reads its machine and keeps the sample.
fn sampling(runtime: &Runtime) {
    let mut machine = Machine::new();
    machine.work();
    let mut agent = Sampling::new(&machine.config()).unwrap();
    count("agent-sample", ROUNDS, 10, || {
        machine.work();
        assert!(runtime.block_on(agent.tick()), "there is no sample");
    });
}
