//! Who may resume a terminal: the account that opened it, as long as it has the right.

use serde_json::{Value, json};

use super::Scene;
use crate::support::rest::Call;
use crate::support::terminal::{Ticket, ask};
use crate::support::text_of;

impl Scene {
    fn by_owner(&self, method: &str, path: &str) -> Call {
        self.site.service.client.call(method.parse().unwrap(), path).bearer(&self.site.owner.token)
    }

    /// Lets a guest open terminals. Returns the address of the grant.
    async fn grant(&self) -> String {
        let scope = json!({"server_id": self.site.server_id});
        let body =
            json!({"subject": {"username": "guest"}, "scope": scope, "role": "operator", "rights": ["terminal"]});
        let grant: Value = self.by_owner("POST", "/grants").json(body).expect(201).await;
        format!("/grants/{}", text_of(&grant["id"]))
    }
}

#[actix_web::test]
async fn nobody_else_resumes_a_terminal() {
    let scene = Scene::start().await;
    let (guest, stranger) = (scene.site.service.register("guest").await, scene.site.service.register("mallory").await);
    scene.grant().await;
    let mut client = scene.open().await;
    client.type_in("echo on''ce\n").await;
    client.until("once\r\n").await;
    let ticket = client.lose();
    let with_other_secret = Ticket { secret: json!("A".repeat(43)), ..ticket.clone() };

    assert_eq!(scene.refusal(&guest, &ticket).await["code"], "not_found");
    assert_eq!(scene.refusal(&scene.site.owner, &with_other_secret).await["code"], "not_found");
    let address = scene.site.service.address;
    assert_eq!(ask(address, &stranger.token, &ticket).await.unwrap_err(), 404);
    assert_eq!(ask(address, "no token", &ticket).await.unwrap_err(), 401);

    let mut client = scene.resume(ticket).await;
    client.type_in("echo tw''ice\n").await;
    client.until("twice\r\n").await;
}

#[actix_web::test]
async fn who_has_lost_the_right_resumes_nothing_and_a_terminal_that_was_open_ends() {
    let scene = Scene::start().await;
    let guest = scene.site.service.register("guest").await;
    let grant = scene.grant().await;
    let mut client = scene.open_as(&guest).await;
    client.type_in("echo on''ce\n").await;
    client.until("once\r\n").await;
    let ticket = client.lose();
    scene.until_detached().await;
    let mut open = scene.open_as(&guest).await;
    open.type_in(&format!("X={} sh -c 'echo on''ce; sleep 1000; :'\n", scene.machine.marker)).await;
    open.until("once\r\n").await;
    scene.machine.until_processes(1).await;

    let _: Value = scene.by_owner("DELETE", &grant).expect(200).await;

    open.socket.expect_close(4404).await;
    scene.machine.until_no_process().await;
    assert_eq!(ask(scene.site.service.address, &guest.token, &ticket).await.unwrap_err(), 404);
}

#[actix_web::test]
async fn a_person_whose_teams_have_changed_resumes_nothing() {
    let scene = Scene::start().await;
    let mut client = scene.open().await;
    client.type_in(&format!("X={} sh -c 'echo on''ce; sleep 1000; :'\n", scene.machine.marker)).await;
    client.until("once\r\n").await;
    scene.machine.until_processes(1).await;
    let ticket = client.lose();
    scene.until_detached().await;

    let team = scene.site.post("/teams").json(json!({ "name": "ops" })).expect(201).await;
    let member = format!("/teams/{}/members/{}", text_of(&team["id"]), scene.site.owner.id);
    let _: Value = scene.by_owner("PUT", &member).expect(200).await;

    assert_eq!(scene.refusal(&scene.site.owner, &ticket).await["code"], "agent_refused");
    scene.machine.until_no_process().await;
    assert_eq!(scene.refusal(&scene.site.owner, &ticket).await["code"], "not_found");
}
