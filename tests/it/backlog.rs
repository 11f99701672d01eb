//! An agent that comes back with a day of samples: the present is shown at once, and the day arrives whole.

use std::path::Path;
use std::time::Duration;

use signalbox_agent::{Config, Exit, Interval, Source, run_with};
use signalbox_protocol::agent::AgentInfo;
use signalbox_protocol::{Sample, Timestamp};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::support::agent::sample_at;
use crate::support::site::Site;
use crate::support::{eventually, text_of};

/// Milliseconds between two samples.
const APART_MS: i64 = 5_000;
/// Samples of a day.
const DAY: i64 = 24 * 3600 * 1000 / APART_MS;

/// Yields a day's samples, the last of them of now, and then one of now each time.
struct Lived {
    taken: watch::Sender<i64>,
    until: Timestamp,
}

impl Source for Lived {
    async fn sample(&mut self) -> Option<Sample> {
        let taken = *self.taken.borrow();
        self.taken.send_replace(taken + 1);
        if taken < DAY {
            return Some(sample_at(self.until.plus_millis((taken + 1 - DAY) * APART_MS)));
        }
        Some(sample_at(Timestamp::now()))
    }
}

struct Agent {
    running: JoinHandle<Exit>,
    stop: oneshot::Sender<()>,
    taken: watch::Receiver<i64>,
}

impl Agent {
    /// An agent that has already taken this many samples.
    fn start(url: &str, key: &str, state: &Path, already_taken: i64) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, taken) = watch::channel(already_taken);
        // The day passes as fast as possible, before the service could ask for another interval.
        let interval = Duration::from_micros(if already_taken < DAY { 100 } else { 500_000 });
        let config = Config {
            interval: Interval::of(interval),
            state_dir: Some(state.into()),
            ..Config::new(url, key).unwrap()
        };
        let info = AgentInfo { version: "1.0.0".into(), ..AgentInfo::default() };
        let lived = Lived { taken: sender, until: Timestamp::now() };
        let running = tokio::spawn(run_with(config, info, lived, async {
            let _ = stopped.await;
        }));
        Self { running, stop, taken }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        assert_eq!(self.running.await.unwrap(), Exit::Stopped);
    }
}

#[actix_web::test]
async fn a_day_of_samples_arrives_whole_behind_a_present_that_is_shown_at_once() {
    let site = Site::start().await;
    // In memory: on a disk under load a call may take the agent as long as on one that hangs.
    let state = tempfile::tempdir_in("/dev/shm").unwrap();
    let began = Timestamp::now();
    // Nothing listens on port 1.
    let mut offline = Agent::start("http://127.0.0.1:1", &site.key, state.path(), 0);
    // The day's samples are not newer; those that it takes after the day are.
    let lived = Timestamp::now();
    offline.taken.wait_for(|taken| *taken >= DAY).await.unwrap();
    offline.stop().await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;

    let url = format!("http://{}", site.service.address);
    let online = Agent::start(&url, &site.key, state.path(), DAY);
    dashboard.expect("status").await;
    let mut shown = Vec::new();
    for _ in 0..5 {
        shown.push(Timestamp::parse(&text_of(&dashboard.expect("metrics").await["timestamp"])).unwrap());
    }
    // The oldest come first. Reading all of the day each time would take the service longer than to receive it.
    let end = format!("resolution=raw&start={}&end={lived}", lived.plus_millis(-2 * APART_MS));
    eventually("the day's end", async || (!site.history(&end).await.is_empty()).then_some(())).await;
    let start = began.plus_millis(-25 * 3600 * 1000);
    let day = format!("resolution=raw&max_points=20000&start={start}");
    let times = eventually("the day is whole", async || {
        let history = site.history(&day).await;
        let times = history.iter().map(|sample| Timestamp::parse(&text_of(&sample["timestamp"])).unwrap());
        let times: Vec<Timestamp> = times.filter(|at| *at <= lived).collect();
        (times.len() as i64 >= DAY).then_some(times)
    })
    .await;

    assert!(shown.iter().all(|at| *at >= began), "only the present is shown: {shown:?}");
    assert!(shown.is_sorted(), "{shown:?}");
    let gaps = times.windows(2).map(|pair| pair[1].millis_since(pair[0]));
    assert!(gaps.clone().all(|gap| gap <= APART_MS * 2), "{:?}", gaps.max());
    online.stop().await;
}
