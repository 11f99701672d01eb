//! Tokens for programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::mcp::{Client, READING, names};
use crate::relay::Relay;
use crate::support::{Outcome, Running, Site};

/// A service with a server of each of two tags.
async fn site() -> Site {
    let site = Site::start().await;
    site.add_server("web-1", &["production"]).await;
    site.add_server("db-1", &["staging"]).await;
    site
}

/// The program with another token.
async fn run_with(site: &Site, token: &str, arguments: &[&str]) -> Outcome {
    let mut command = site.command(arguments);
    command.env("SIGNALBOX_TOKEN", token);
    Running::start(command).outcome().await
}

/// A token of a program with these options.
async fn made(site: &Site, options: &[&str]) -> String {
    let made = site.run(&[&["tokens", "add", "program", "--token-file", "-"], options].concat()).await;
    made.done().trim_end().to_owned()
}

#[tokio::test]
async fn a_token_goes_to_a_private_file_and_nowhere_else() {
    let site = site().await;
    let file = site.home.path().join("token");
    let name = file.to_str().unwrap();

    let options = ["--tag", "production", "--expires-in", "30d", "--network", "127.0.0.0/8"];
    let role = ["--role", "operator", "--right", "logs"];
    let add = ["tokens", "add", "grafana", "--token-file", name];
    let outcome = site.run(&[&add[..], &options, &role].concat()).await;

    assert_eq!(outcome.done(), format!("Made grafana. Its token is in {name}.\n"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = fs::read_to_string(&file).unwrap();
    assert!(token.starts_with("sbt_") && token.ends_with('\n'), "{} bytes", token.len());
    let listed = site.get("/tokens").await;
    let kept = &listed[0];
    let fields = (&kept["name"], &kept["role"], &kept["rights"], &kept["scope"], &kept["networks"]);
    let (scope, networks) = (json!({"tag": "production"}), json!(["127.0.0.0/8"]));
    assert_eq!(fields, (&json!("grafana"), &json!("operator"), &json!(["logs"]), &scope, &networks));
    let servers = run_with(&site, token.trim_end(), &["servers", "-o", "json"]).await.json();
    let seen: Vec<&Value> = servers.as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(seen, [&json!("web-1")]);
}

#[tokio::test]
async fn a_refusal_leaves_no_file() {
    let site = site().await;
    let token = made(&site, &[]).await;
    let file = site.home.path().join("token");
    let name = file.to_str().unwrap();

    let by_token = run_with(&site, &token, &["tokens", "add", "more", "--token-file", name]).await;
    let too_long = site.run(&["tokens", "add", "long", "--token-file", name, "--expires-in", "400d"]).await;
    let nowhere = site.run(&["tokens", "add", "net", "--token-file", name, "--network", "nowhere"]).await;

    let advice =
        format!("`signalboxctl login {} --name NAME` signs in with your account, as a context of its own", site.url);
    by_token.refused(1, &advice);
    too_long.refused(1, "expires_at: ");
    nowhere.refused(1, "networks.0: ");
    assert!(!file.exists());
    assert_eq!(site.get("/tokens").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_that_nobody_reads_is_no_success() {
    let site = site().await;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);

    let add = ["tokens", "add", "program", "--token-file", "-"];
    let outcome = site.command(&add).stdout(writer).output().unwrap();

    let listed = site.get("/tokens").await;
    let id = listed[0]["id"].as_str().unwrap();
    let words = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(1), "{words}");
    assert!(words.ends_with(&format!("revoke it with `signalboxctl tokens rm {id}`\n")), "{words}");
}

#[tokio::test]
async fn a_lost_answer_does_not_say_whether_a_token_was_made() {
    let site = site().await;
    let relay = Relay::start(site.url.trim_start_matches("http://")).await;
    relay.lose_answer("POST /api/v1/tokens");

    let mut command = site.command(&["tokens", "add", "program", "--token-file", "-"]);
    command.env("SIGNALBOX_URL", relay.url());
    let outcome = Running::start(command).outcome().await;

    assert!(relay.has_lost_answer());
    outcome.refused(1, "; it is not known whether the token was made: `signalboxctl tokens` lists all\n");
}

#[tokio::test]
async fn tokens_are_listed_and_revoked_by_name() {
    let site = site().await;
    let token = made(&site, &["--server", "web-1", "--role", "operator", "--right", "logs"]).await;
    run_with(&site, &token, &["servers"]).await.done();

    let listed = site.run(&["tokens"]).await;
    let unsure = site.run(&["tokens", "rm", "program"]).await;
    let revoked = site.run(&["tokens", "rm", "program", "--yes"]).await;
    let unknown = site.run(&["tokens", "rm", "program", "--yes"]).await;

    assert!(listed.done().contains("program  operator (logs)  1 chosen  all "), "{listed:?}");
    unsure.refused(2, "confirm with --yes");
    assert_eq!(revoked.done(), "Revoked program.\n");
    unknown.refused(1, "there is no token \"program\"");
    run_with(&site, &token, &["servers"]).await.refused(1, "check SIGNALBOX_TOKEN");
    assert_eq!(site.run(&["tokens"]).await.done(), "");
}

#[tokio::test]
async fn a_token_signs_in_and_serves_an_assistant() {
    let mut site = site().await;
    let token = made(&site, &["--tag", "staging"]).await;
    let file = site.secret_file("token", &token);

    let login = site.run_plain(&["login", &site.url, "--name", "assistant", "--token-file", &file]).await;
    assert_eq!(login.done(), format!("Signed in to {} as the context assistant.\n", site.url));
    assert!(site.run_plain(&["servers"]).await.done().contains("db-1"));
    site.token = token;
    let mut client = Client::start(&site, &[]);

    assert_eq!(names(&client.tools()), READING);
    let servers = client.data("list_servers", &json!({}));
    assert_eq!((servers["servers"].as_array().unwrap().len(), &servers["servers"][0]["name"]), (1, &json!("db-1")));
    let hidden = client.refusal("read_metrics", &json!({"server": "web-1"}));
    assert!(hidden.contains("there is no server \"web-1\" that you can see"), "{hidden}");
}
