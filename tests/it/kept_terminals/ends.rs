//! How terminals end that are kept.

use std::time::Duration;

use serde_json::json;
use signalbox::audit::{Outcome, action};
use signalbox::store::TerminalNote;

use super::Scene;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::terminal::ask;
use crate::support::{eventually, uuid_of};

#[actix_web::test]
async fn a_client_that_closes_its_terminal_ends_it_and_one_that_goes_away_does_not() {
    let scene = Scene::start().await;
    for (code, is_kept) in [(1000, false), (1001, true), (3000, false), (4000, true)] {
        let mut client = scene.open().await;
        client.type_in(&format!("X={} sh -c 'echo on''ce; sleep 1000; :'\n", scene.machine.marker)).await;
        client.until("once\r\n").await;
        scene.machine.until_processes(1).await;

        let ticket = client.close(code).await;

        if is_kept {
            scene.until_detached().await;
            scene.resume(ticket).await.close(1000).await;
        }
        scene.machine.until_no_process().await;
        scene.until_told("terminal.open ok").await;
    }
    assert_eq!(scene.told().await.iter().filter(|told| told.as_str() == "terminal.detach ok").count(), 2);
}

#[actix_web::test]
async fn a_shell_ends_when_its_client_stays_away() {
    let adjust = |config: &mut signalbox::config::Config| config.timing.terminal_kept = Duration::from_millis(300);
    let scene = Scene::start_with(&["--terminal", "on"], adjust).await;
    let mut client = scene.open().await;
    client.type_in(&format!("X={} sh -c 'echo on''ce; sleep 1000; :'\n", scene.machine.marker)).await;
    client.until("once\r\n").await;
    scene.machine.until_processes(1).await;

    let ticket = client.lose();
    scene.machine.until_no_process().await;
    // A task of its own writes it.
    scene.until_told("terminal.open ok").await;

    let error = scene.refusal(&scene.site.owner, &ticket).await;
    let detail = "no such terminal: it has ended, or it was opened by somebody else";
    assert_eq!(error, json!({"code": "not_found", "detail": detail}));
    let all = ["terminal.open started", "terminal.detach ok", "terminal.open ok", "terminal.resume failed: not_found"];
    assert_eq!(scene.told().await, all);
}

#[actix_web::test]
async fn a_client_that_comes_back_late_hears_how_its_shell_has_ended() {
    let scene = Scene::start().await;
    let gate = scene.machine.gate();
    let mut client = scene.open().await;
    client.type_in(&format!("echo o''ne; {}; echo tw''o; exit 9\n", gate.wait())).await;
    client.until("one\r\n").await;

    let ticket = client.lose();
    scene.until_detached().await;
    gate.open();
    scene.until_told("terminal.open ok").await;
    let mut client = scene.resume(ticket.clone()).await;

    client.until("two\r\n").await;
    assert_eq!(client.socket.until("exit").await, json!({"exit_code": 9}));
    client.socket.expect_close(1000).await;
    let all = ["terminal.open started", "terminal.detach ok", "terminal.open ok", "terminal.resume ok"];
    assert_eq!(scene.told().await, all);
}

#[actix_web::test]
async fn a_terminal_ends_with_its_agent() {
    let scene = Scene::start().await;
    let mut client = scene.open().await;
    client.type_in(&format!("X={} sh -c 'echo on''ce; sleep 1000; :'\n", scene.machine.marker)).await;
    client.until("once\r\n").await;
    let ticket = client.lose();
    scene.until_detached().await;

    scene.agent.signal("KILL");
    scene.until_told("terminal.open failed: agent_disconnected").await;
    // Otherwise the status of the agent that was killed would pass for that of the next one.
    scene.site.until_status("offline").await;
    let _agent = scene.machine.agent(scene.site.service.address, &scene.site.key, &["--terminal", "on"]);
    scene.site.until_status("online").await;

    scene.machine.until_no_process().await;
    assert_eq!(scene.refusal(&scene.site.owner, &ticket).await["code"], "not_found");
}

#[actix_web::test]
async fn terminals_without_clients_have_their_places_at_the_agent() {
    let scene = Scene::start().await;
    let mut tickets = Vec::new();
    for _ in 0..4 {
        let mut client = scene.open().await;
        client.type_in("echo on''ce\n").await;
        client.until("once\r\n").await;
        tickets.push(client.lose());
    }

    let mut fifth = scene.open().await;
    assert_eq!(fifth.socket.until("error").await["code"], "agent_busy");

    for ticket in tickets {
        scene.resume(ticket).await.close(1000).await;
    }
}

#[actix_web::test]
async fn a_socket_that_names_no_terminal_is_closed() {
    let scene = Scene::start().await;
    let path = format!("/api/v1/ws/terminal/{}?resume=true", scene.site.server_id);
    let messages = [
        json!({"type": "input", "data": {"data": "ls\n"}}),
        json!({"type": "resume"}),
        json!({"type": "resume", "data": {"terminal_id": 1, "secret": "x"}}),
        json!({"type": "resume", "data": {"terminal_id": scene.site.server_id}}),
    ];
    for message in messages {
        let token = &scene.site.owner.token;
        let mut socket =
            Dashboard::open(scene.site.service.address, &path, Pass::Subprotocol(token), &[]).await.unwrap();

        socket.send(message).await;

        socket.expect_close(4400).await;
    }
    assert_eq!(scene.told().await, Vec::<String>::new());
}

#[actix_web::test]
async fn reports_of_the_end_that_come_at_once_make_one_entry_and_nothing_follows_it() {
    let scene = Scene::start().await;
    let client = scene.open().await;
    let terminal_id = uuid_of(&client.ticket.terminal_id);
    let (store, server) = (&scene.site.service.state.store, (scene.site.owner.id, scene.site.server_id));

    let ends = [Outcome::Ok, Outcome::Failed("agent_timeout".into()), Outcome::Ok, Outcome::Failed("busy".into())];
    let note = |end| store.note_terminal(server, terminal_id, TerminalNote::new(action::TERMINAL_OPEN, end));
    let ends = ends.into_iter().map(note);
    for written in futures_util::future::join_all(ends).await {
        written.unwrap();
    }
    let detached = TerminalNote::new(action::TERMINAL_DETACH, Outcome::Ok);
    store.note_terminal(server, terminal_id, detached).await.unwrap();

    let told = scene.told().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|told| told.starts_with("terminal.open ")), "{told:?}");
}

#[actix_web::test]
async fn a_terminal_that_has_ended_is_remembered_only_where_its_account_has_a_place() {
    for (places, code) in [(4, None), (2, Some("not_found"))] {
        let scene = Scene::start_with(&["--terminal", "on"], |config| config.shares.dashboards.places = places).await;
        let mut client = scene.open().await;
        client.type_in("exit 3\n").await;
        assert_eq!(client.socket.until("exit").await, json!({"exit_code": 3}));
        client.socket.expect_close(1000).await;
        let ticket = client.ticket;

        // The place of the first socket may be free a moment later.
        let mut socket = eventually("the account has a place", async || {
            ask(scene.site.service.address, &scene.site.owner.token, &ticket).await.ok()
        })
        .await;

        match code {
            Some(code) => assert_eq!(socket.expect("error").await["code"], code),
            None => assert_eq!(socket.until("exit").await, json!({"exit_code": 3})),
        }
    }
}
