//! All instances are restarted one after the other behind a balancer that obeys `/readyz`, and no client notices.

use std::rc::Rc;
use std::time::Duration;

use actix_web::rt::{self, task::JoinHandle};
use serde_json::json;
use signalbox_protocol::close::{OVERLOADED, RESTARTING};
use tokio::sync::watch;

use super::load::Stream;
use super::{A, B, C, Scene};
use crate::support::Client;
use crate::support::balancer::Balancer;
use crate::support::cluster::Cluster;

/// How often each client calls.
const EVERY: Duration = Duration::from_millis(40);

/// A client that calls all the time.
struct Caller {
    over: watch::Sender<bool>,
    task: JoinHandle<(usize, Vec<String>)>,
}

impl Caller {
    fn start(client: Client, token: String) -> Self {
        let (over, is_over) = watch::channel(false);
        let task = rt::spawn(async move {
            let (mut calls, mut failed) = (0, Vec::new());
            let mut ticks = tokio::time::interval(EVERY);
            while !*is_over.borrow() {
                ticks.tick().await;
                let call = match calls % 4 {
                    0 => client.get("/servers"),
                    1 => client.get("/auth/me"),
                    2 => client.get("/alerts"),
                    _ => client.post("/servers").json(json!({"name": format!("{calls}"), "host": "192.0.2.10"})),
                };
                let answer = call.bearer(&token).send().await;
                calls += 1;
                if !matches!(answer.status, 200 | 201) {
                    failed.push(format!("call {calls}: {answer}"));
                }
            }
            (calls, failed)
        });
        Self { over, task }
    }

    /// How many calls there were, and those that failed.
    async fn stop(self) -> (usize, Vec<String>) {
        self.over.send_replace(true);
        self.task.await.unwrap()
    }
}

#[actix_web::test]
async fn no_call_fails_no_sample_is_lost_and_agents_move_in_order() {
    // The balancer has as long to notice as an instance may take to end.
    let mut scene = Scene::on(Cluster::told(3, &["--drain", "5"]).await).await;
    let balancer = Rc::new(Balancer::over(&scene.cluster.addresses()).await);
    for instance in [A, B, C] {
        balancer.until(instance, true).await;
    }
    let mut streams = Vec::new();
    for number in 0..6 {
        let (id, key) = scene.another(&format!("balanced-{number}")).await;
        streams.push(Stream::start(vec![balancer.address], id, key));
    }
    for stream in &streams {
        stream.go_on(1).await;
    }
    let callers = [(); 2].map(|()| Caller::start(balancer.client.clone(), scene.prepared.token.clone()));

    for instance in [A, B, C] {
        let outcome = scene.cluster.terminate(instance).await;
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        balancer.until(instance, false).await;
        for stream in &streams {
            stream.go_on(2).await;
        }
        scene.cluster.begin(instance).await;
        balancer.until(instance, true).await;
    }

    for caller in callers {
        let (calls, failed) = caller.stop().await;
        assert!(failed.is_empty(), "{} of {calls} calls failed: {failed:#?}", failed.len());
        assert!(calls > 50, "{calls} calls");
    }
    let mut moves = 0;
    for stream in streams {
        let id = stream.server_id;
        // One that has just begun may be too busy for an agent that comes, and asks it to try again.
        assert!(stream.ends().iter().all(|code| matches!(*code, RESTARTING | OVERLOADED)), "{:?}", stream.ends());
        moves += stream.ends().iter().filter(|code| **code == RESTARTING).count();
        let told = stream.stop().await;
        for instance in [A, B, C] {
            scene.expect_whole(instance, id, &told).await;
        }
    }
    assert!(moves >= 6, "each had to move once at least, all together {moves} times");
}
