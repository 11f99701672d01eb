//! Who may resume a terminal: the account that opened it, as long as it has the right.

use std::time::Duration;

use serde_json::{Value, json};

use super::Scene;
use crate::factors::execute;
use crate::support::rest::Call;
use crate::support::terminal::{Client, Ticket, ask};
use crate::support::{Account, PASSWORD, text_of};

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

    /// The ticket of a terminal whose client was lost.
    async fn lost(&self, account: &Account) -> Ticket {
        let mut client = self.open_as(account).await;
        client.type_in("echo on''ce\n").await;
        client.until("once\r\n").await;
        let ticket = client.lose();
        self.until_detached().await;
        ticket
    }

    /// A terminal in which a program runs.
    async fn busy(&self, account: &Account) -> Client {
        let mut client = self.open_as(account).await;
        client.type_in(&format!("X={} sh -c 'echo on''ce; sleep 1000; :'\n", self.machine.marker)).await;
        client.until("once\r\n").await;
        self.machine.until_processes(1).await;
        client
    }

    /// Makes the owner a member of a new team. Returns the address of the membership.
    async fn join_team(&self, name: &str) -> String {
        let team = self.site.post("/teams").json(json!({ "name": name })).expect(201).await;
        let member = format!("/teams/{}/members/{}", text_of(&team["id"]), self.site.owner.id);
        let _: Value = self.by_owner("PUT", &member).expect(200).await;
        member
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
    let ticket = scene.lost(&guest).await;
    let mut open = scene.busy(&guest).await;

    let _: Value = scene.by_owner("DELETE", &grant).expect(200).await;

    open.socket.expect_close(4404).await;
    scene.machine.until_no_process().await;
    assert_eq!(ask(scene.site.service.address, &guest.token, &ticket).await.unwrap_err(), 404);
}

#[actix_web::test]
async fn a_person_whose_teams_have_changed_resumes_nothing_until_they_are_the_same_again() {
    let scene = Scene::start().await;
    let ticket = scene.lost(&scene.site.owner).await;

    let member = scene.join_team("ops").await;
    let error = scene.refusal(&scene.site.owner, &ticket).await;
    let _: Value = scene.by_owner("DELETE", &member).expect(200).await;
    let mut client = scene.resume(ticket).await;

    let detail = "your name or your teams have changed since the terminal was opened: open another one";
    assert_eq!(error, json!({"code": "agent_refused", "detail": detail}));
    client.type_in("echo tw''ice\n").await;
    client.until("twice\r\n").await;
}

#[actix_web::test]
async fn a_member_of_several_teams_resumes_a_terminal_again_and_again() {
    let scene = Scene::start().await;
    for name in ["ops", "web", "night", "database"] {
        scene.join_team(name).await;
    }
    let mut client = scene.open().await;
    for number in 0..6 {
        // The service reads all teams again.
        scene.site.post("/teams").json(json!({ "name": format!("others {number}") })).expect(201).await;
        client = scene.resume(client.lose()).await;
        client.type_in(&format!("echo numb''er {number}\n")).await;
        client.until(&format!("number {number}\r\n")).await;
    }
}

#[actix_web::test]
async fn a_program_and_its_account_do_not_resume_each_others_terminals() {
    let scene = Scene::start().await;
    let body = json!({"name": "deployment", "role": "operator", "scope": {"all": true}});
    let made = scene.site.post("/tokens").json(body).expect(201).await;
    let program = Account { token: text_of(&made["token"]), ..scene.site.owner.clone() };
    let mut of_person = scene.open().await;
    of_person.type_in("echo on''ce\n").await;
    of_person.until("once\r\n").await;
    let mut of_program = scene.open_as(&program).await;
    of_program.type_in("echo on''ce\n").await;
    of_program.until("once\r\n").await;
    let (of_person, of_program) = (of_person.lose(), of_program.lose());

    assert_eq!(scene.refusal(&program, &of_person).await["code"], "not_found");
    assert_eq!(scene.refusal(&scene.site.owner, &of_program).await["code"], "not_found");

    let mut client = Client::resume(scene.site.service.address, &program.token, of_program).await;
    client.type_in("echo tw''ice\n").await;
    client.until("twice\r\n").await;
    scene.resume(of_person).await.close(1000).await;
}

#[actix_web::test]
async fn a_locked_account_resumes_nothing_and_its_open_terminal_ends() {
    let scene = Scene::start().await;
    let guest = scene.site.service.register("guest").await;
    scene.grant().await;
    let ticket = scene.lost(&guest).await;
    let mut open = scene.busy(&guest).await;

    let lock = scene.by_owner("PUT", &format!("/users/{}", guest.id)).json(json!({"disabled": true}));
    let _: Value = lock.expect(200).await;

    open.socket.expect_close(4401).await;
    scene.machine.until_no_process().await;
    assert_eq!(ask(scene.site.service.address, &guest.token, &ticket).await.unwrap_err(), 401);
}

#[actix_web::test]
async fn with_step_up_a_terminal_is_resumed_after_a_recent_proof() {
    let scene =
        Scene::start_with(&["--terminal", "on"], |config| config.step_up = Some(Duration::from_secs(600))).await;
    let ticket = scene.lost(&scene.site.owner).await;
    let (service, address) = (&scene.site.service, scene.site.service.address);
    // As if ten minutes had passed. A login that was not used yet is not cached.
    let old = service.sign_in(&scene.site.owner).await;
    execute(service, "UPDATE logins SET proved_at = proved_at - 600000").await;

    assert_eq!(ask(address, &old.token, &ticket).await.unwrap_err(), 403);
    let prove = service.client.post("/auth/step-up").bearer(&old.token).json(json!({"password": PASSWORD}));
    prove.expect(200).await;

    let mut client = Client::resume(address, &old.token, ticket).await;
    client.type_in("echo tw''ice\n").await;
    client.until("twice\r\n").await;
}
