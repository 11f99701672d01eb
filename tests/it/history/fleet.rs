//! Many servers at once: each has its own history and no other's.

use signalbox_protocol::{Encoding, Sample};
use uuid::Uuid;

use super::reference::{Model, assert_means};
use super::scene::{HOUR, MINUTE, Scene, days_ago, every, rich};
use crate::support::agent::FakeAgent;

const SERVERS: i64 = 50;

const STEP: i64 = 10 * MINUTE;

struct Server {
    id: Uuid,
    agent: FakeAgent,
    model: Model,
}

/// The samples of the server with that number, which no other sends.
fn own(number: i64, at: i64) -> Sample {
    let mut sample = rich(at + number);
    sample.disk_usage[0].path = format!("/srv/{number}");
    sample.cpu_per_core.truncate(number as usize % 4);
    sample
}

#[actix_web::test]
async fn each_of_fifty_servers_has_its_own_history() {
    let mut scene = Scene::of_interval(STEP).await;
    let start = days_ago(2) + 22 * HOUR;
    let range = (start, start + 4 * HOUR - 1);
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        let name = format!("web-{number}-of-many");
        let (id, key) = scene.site.service.server_with_key(&scene.site.owner, &name).await;
        let agent = FakeAgent::online_in(scene.site.service.address, &key, Encoding::MessagePack).await;
        servers.push(Server { id, agent, model: Model::of_interval(STEP) });
    }
    // Every other sample, and then those between them, so that sealed hours are sealed again. Some send less.
    for round in 0..2 {
        for (number, server) in (0..).zip(&mut servers) {
            let hours = 1 + number % 4;
            let from = start + round * STEP;
            let samples = every(2 * STEP, (from, start + hours * HOUR), |at| own(number, at));
            samples.iter().for_each(|sample| server.model.add(sample));
            server.agent.send_metrics(round as u64 + 1, samples).await;
        }
        for server in &mut servers {
            server.agent.expect_ack(round as u64 + 1).await;
        }
        if round == 0 {
            scene.settle().await;
        }
    }
    // Their agents leave.
    let models: Vec<(Uuid, Model)> = servers.into_iter().map(|server| (server.id, server.model)).collect();

    for when in ["in memory and in blocks", "settled", "started again"] {
        for (id, model) in &models {
            (scene.site.server_id, scene.model) = (*id, model.clone());
            scene.assert_raw(when, range).await;
            let means = scene.history(range, "resolution=1h").await;
            assert_means(when, &means, &model.means(HOUR, range));
        }
        match when {
            "settled" => scene = scene.restart().await,
            _ => scene.settle().await,
        }
    }
}
