//! Many machines at once.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::json;
use signalbox::shares::{Permit, Share};

use super::Scene;
use crate::support::{TestService, eventually, text_of};

impl Scene {
    /// Takes every place that the owner's machines can have.
    fn take_places(&self) -> Vec<Permit> {
        let gate = &self.service.state.limits.shares.enrolments;
        std::iter::from_fn(|| gate.try_enter(Share::Account(self.owner.id)).ok()).collect()
    }

    async fn until_waiting(&self, machines: usize) {
        let gate = &self.service.state.limits.shares.enrolments;
        eventually("the machines wait", async || (gate.waiting() == machines).then_some(())).await;
    }
}

#[actix_web::test]
async fn machines_of_one_account_leave_room_for_those_of_others_and_all_become_servers() {
    const MACHINES: usize = 40;
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"uses": MACHINES})).await;
    let bob = scene.service.register("bob").await;
    let body = json!({"name": "rack 5", "uses": 1});
    let other = scene.service.client.post("/enrolments").bearer(&bob.token).json(body).expect(201).await;
    let held = scene.take_places();
    assert!(!held.is_empty());
    let machines = (0..MACHINES).map(|_| tokio::spawn(scene.enrol(&enrolment.token, "web").expect(201)));
    let machines: Vec<_> = machines.collect();
    scene.until_waiting(MACHINES).await;

    scene.enrol(&text_of(&other["token"]), "db").expect(201).await;

    assert_eq!(scene.server_names().await, [] as [&str; 0], "they still wait");
    drop(held);
    let names: HashSet<String> =
        join_all(machines).await.into_iter().map(|made| text_of(&made.unwrap()["name"])).collect();
    assert_eq!((names.len(), scene.server_names().await.len()), (MACHINES, MACHINES));
    assert_eq!(scene.service.state.limits.shares.enrolments.inside(), 0);
}

#[actix_web::test]
async fn a_machine_that_finds_the_line_full_is_refused_for_now_and_takes_no_use() {
    let service = TestService::start_with(|config| config.shares.enrolments.waiting = 1).await;
    let scene = Scene::of(service).await;
    let enrolment = scene.enrolment(json!({"uses": 1})).await;
    let held = scene.take_places();
    let first = scene.enrol(&enrolment.token, "web");
    let first = tokio::spawn(first.expect(201));
    scene.until_waiting(1).await;

    scene.enrol(&enrolment.token, "web").expect_error(503, "busy").await;

    drop(held);
    assert_eq!(first.await.unwrap()["name"], "web");
    assert_eq!(scene.shown(&enrolment).await["uses_left"], 0);
}
