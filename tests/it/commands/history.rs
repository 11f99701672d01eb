//! The history of a server's commands.

use serde_json::json;
use signalbox_protocol::agent::Stream;

use crate::support::site::Site;
use crate::support::{keys_of, text_of, uuid_of};

#[actix_web::test]
async fn it_is_empty_before_the_first_command() {
    let site = Site::start().await;

    let answer = site.service.client.get(site.commands_path()).bearer(&site.owner.token).expect_answer(200).await;

    assert_eq!((answer.json(), answer.header("X-Total-Count")), (json!([]), "0"));
}

#[actix_web::test]
async fn it_tells_the_newest_first_page_by_page() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    for number in 0..5 {
        let id = site.running(&mut agent, &format!("echo {number}")).await;
        if number < 3 {
            agent.finish(id).await;
        }
    }

    let page = |query: &'static str| {
        let call = site.service.client.get(site.commands_path() + query).bearer(&site.owner.token);
        async move {
            let answer = call.expect_answer(200).await;
            assert_eq!(answer.header("X-Total-Count"), "5");
            let page = answer.json();
            page.as_array().unwrap().iter().map(|row| text_of(&row["command"])).collect::<Vec<_>>()
        }
    };

    assert_eq!(page("").await, ["echo 4", "echo 3", "echo 2", "echo 1", "echo 0"]);
    assert_eq!(page("?limit=2&offset=1").await, ["echo 3", "echo 2"]);
    assert_eq!(page("?limit=2&offset=4").await, ["echo 0"]);
    assert!(page("?offset=5").await.is_empty());
    let statuses: Vec<_> = site.commands().await.iter().map(|row| text_of(&row["status"])).collect();
    assert_eq!(statuses, ["running", "running", "succeeded", "succeeded", "succeeded"]);
}

#[actix_web::test]
async fn an_invalid_page_is_reported() {
    let site = Site::start().await;
    let path = format!("{}?limit=501&offset=-1", site.commands_path());

    let faults = [("query", "limit", "value_error.number.not_le"), ("query", "offset", "value_error.number.not_ge")];
    site.service.client.get(path).bearer(&site.owner.token).expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn it_tells_who_ran_what_from_where_and_not_the_output() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "echo secret").await;
    agent.send_output(id, Stream::Stdout, "secret\n").await;
    agent.finish(id).await;

    let listed = site.commands().await[0].clone();

    assert_eq!(uuid_of(&listed["command_id"]), id);
    assert_eq!(uuid_of(&listed["server_id"]), site.server_id);
    assert_eq!(uuid_of(&listed["user_id"]), site.owner.id);
    assert_eq!((&listed["username"], &listed["address"]), (&json!("owner"), &json!("127.0.0.1")));
    assert_eq!((&listed["command"], &listed["exit_code"]), (&json!("echo secret"), &json!(0)));
    for field in ["output", "stdout", "stderr", "stdin"] {
        assert!(!keys_of(&listed).contains(&field), "{listed}");
    }
    let mut read = site.command(id).await;
    for field in ["output", "stdout", "stderr"] {
        read.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(read, listed, "the list tells the same as the command itself");
}

#[actix_web::test]
async fn a_command_is_shown_while_it_runs_and_afterwards() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "make").await;
    assert_eq!(site.command(id).await["output"], "");

    agent.send_output(id, Stream::Stdout, "one\n").await;
    agent.settle(1).await;
    let running = site.command(id).await;
    agent.send_output(id, Stream::Stderr, "two\n").await;
    agent.finish(id).await;
    let ended = site.command(id).await;

    assert_eq!((&running["status"], &running["output"]), (&json!("running"), &json!("one\n")));
    assert_eq!((&ended["status"], &ended["output"]), (&json!("succeeded"), &json!("one\ntwo\n")));
    assert_eq!(ended["started_at"], running["started_at"]);
    assert_eq!(ended["created_at"], running["created_at"]);
}

#[actix_web::test]
async fn it_outlives_the_service() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "echo kept").await;
    agent.send_output(id, Stream::Stdout, "kept\n").await;
    agent.send_output(id, Stream::Stderr, "too\n").await;
    agent.finish(id).await;
    let before = (site.command(id).await, site.commands().await);

    let site = site.restart().await;

    assert_eq!((site.command(id).await, site.commands().await), before);
}
