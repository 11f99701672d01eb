//! What one of many costs: the bytes that this many more of them allocate, divided by their number, the least of several times.

use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;

use crate::allocator::allocated_bytes;
use crate::runtime;
use crate::service::Service;

/// Created before the measurement, so that the costs of the first of a kind are not counted.
const FIRST: usize = 20;

/// As many are counted at a time. Maps that double among them belong to them.
const COUNTED: usize = 100;

/// Something of another kind that is allocated once, like the buffers of a worker, falls into one of these at most.
const TIMES: usize = 2;

const ALL: usize = FIRST + TIMES * COUNTED;

/// When nothing changes for this long, everything that was begun is done.
const CALM: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// After this many checks the figure is used as it is.
const MAX_LOOKS: u32 = 200;

pub fn count_all() {
    let (service, runtime) = (Service::start(), runtime());
    let servers: Vec<_> = (0..ALL).map(|number| service.server(&format!("server-{number}"))).collect();
    let server_id = servers[0].0;
    let mut buffer = vec![0; 64 * 1024];

    let (mut keys, mut agents) = (servers.iter(), Vec::with_capacity(ALL));
    count("agent-session", &runtime, || agents.push(service.agent(&keys.next().unwrap().1, &mut buffer)));

    let mut dashboards = Vec::with_capacity(ALL);
    count("dashboard", &runtime, || dashboards.push(service.dashboard(server_id, &mut buffer)));

    // Its agent is connected and does not answer.
    let (path, body) = (format!("/commands/{server_id}?wait=0"), json!({ "command": "true" }));
    count("job", &runtime, || _ = service.post(&path, &body));
}

fn count(name: &str, runtime: &Runtime, mut make: impl FnMut()) {
    (0..FIRST).for_each(|_| make());
    let bytes = (0..TIMES).map(|_| {
        let before = settled(runtime);
        (0..COUNTED).for_each(|_| make());
        settled(runtime).saturating_sub(before) / COUNTED
    });
    println!("bytes {name} {}", bytes.min().unwrap());
}

/// The allocated bytes when nothing happens any more.
fn settled(runtime: &Runtime) -> usize {
    let (mut last, mut calm) = (allocated_bytes(), 0);
    for _ in 0..MAX_LOOKS {
        runtime.block_on(async { tokio::time::sleep(LOOK_EVERY).await });
        let now = allocated_bytes();
        calm = if now == last { calm + 1 } else { 0 };
        if calm == CALM {
            break;
        }
        last = now;
    }
    last
}
