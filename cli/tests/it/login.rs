//! Signing in, contexts, and what happens without them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use aws_lc_rs::hmac;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use crate::relay::Relay;
use crate::support::{PASSWORD, Running, Site, eventually};
use crate::terminal::Terminal;

pub async fn signed_in() -> Site {
    let site = Site::start().await;
    let password = site.secret_file("password", PASSWORD);
    let outcome = site
        .run_plain(&["login", &site.url, "--name", "home", "--username", "ada", "--password-file", &password])
        .await;
    assert_eq!(outcome.done(), format!("Signed in to {} as the context home.\n", site.url));
    site
}

pub fn contexts_file(site: &Site) -> std::path::PathBuf {
    site.home.path().join("signalbox/contexts.json")
}

pub fn contexts(site: &Site) -> Value {
    serde_json::from_slice(&fs::read(contexts_file(site)).unwrap()).unwrap()
}

#[tokio::test]
async fn a_password_becomes_a_login_that_only_its_user_can_read() {
    let site = signed_in().await;

    let listed = site.run_plain(&["context", "ls", "--output", "json"]).await;

    let expected = json!([{"name": "home", "url": site.url, "credential": "login of ada", "current": true}]);
    assert_eq!(listed.json(), expected);
    assert_eq!(fs::metadata(contexts_file(&site)).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(contexts_file(&site)).unwrap().contains(PASSWORD));
    site.run_plain(&["servers"]).await.done();
}

#[tokio::test]
async fn a_wrong_password_keeps_nothing() {
    let site = Site::start().await;
    let password = site.secret_file("password", "wrong horse");

    let outcome = site.run_plain(&["login", &site.url, "--username", "ada", "--password-file", &password]).await;

    outcome.refused(1, "signalboxctl: ");
    assert!(!outcome.stderr.contains("wrong horse"), "{outcome:?}");
    assert!(!contexts_file(&site).exists());
}

#[tokio::test]
async fn a_token_is_tried_before_it_is_kept() {
    let site = Site::start().await;
    let good = site.secret_file("good", &site.token);
    let bad = site.secret_file("bad", "sbt_secretive");

    let refused = site.run_plain(&["login", &site.url, "--token-file", &bad]).await;
    let kept = site.run_plain(&["login", &site.url, "--token-file", &good]).await;

    refused.refused(1, "sign in again with");
    assert!(!refused.stderr.contains("secretive"), "{refused:?}");
    kept.done();
    assert_eq!(contexts(&site)["contexts"].as_object().unwrap().len(), 1);
    assert_eq!(contexts(&site)["current"], site.url.trim_start_matches("http://"));
}

#[tokio::test]
async fn a_file_that_others_can_read_is_no_place_for_a_token() {
    let site = Site::start().await;
    let file = site.secret_file("token", &site.token);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();

    let outcome = site.run_plain(&["login", &site.url, "--token-file", &file]).await;

    outcome.refused(2, "other users can read it (mode 0644)");
}

// Only as root there is such a user: others have a home in the system's list.
#[tokio::test]
async fn the_environment_is_enough_for_a_user_without_a_home() {
    let site = Site::start().await;

    let listed = Running::start(site.homeless_command(&["servers", "--output", "json"])).outcome().await;

    assert_eq!(listed.json(), json!([]));
}

pub fn login_of(contexts: &Value) -> &Value {
    &contexts["contexts"]["home"]["credential"]
}

/// Replaces the access token of the login.
pub fn replace_token(site: &Site, token: &str) {
    let mut all = contexts(site);
    all["contexts"]["home"]["credential"]["access_token"] = json!(token);
    fs::write(contexts_file(site), all.to_string()).unwrap();
}

#[tokio::test]
async fn processes_that_meet_an_expired_token_renew_it_once() {
    let site = signed_in().await;
    let before = contexts(&site);
    replace_token(&site, &site.expiring(login_of(&before)["access_token"].as_str().unwrap(), -5));

    let all: Vec<Running> = (0..4).map(|_| Running::start(site.plain_command(&["servers"]))).collect();
    for process in all {
        process.outcome().await.done();
    }

    let after = contexts(&site);
    assert_ne!(login_of(&after)["refresh_token"], login_of(&before)["refresh_token"]);
    // The service ends a login whose spent token is used: it has not.
    site.run_plain(&["servers"]).await.done();
    assert_eq!(contexts(&site), after);
}

#[tokio::test]
async fn a_renewal_whose_answer_gets_lost_is_repeated() {
    let site = signed_in().await;
    let relay = Relay::start(site.url.trim_start_matches("http://")).await;
    relay.lose_answer("POST /api/v1/auth/refresh");
    let mut all = contexts(&site);
    all["contexts"]["home"]["url"] = json!(relay.url());
    fs::write(contexts_file(&site), all.to_string()).unwrap();
    replace_token(&site, &site.expiring(login_of(&all)["access_token"].as_str().unwrap(), -5));

    site.run_plain(&["servers"]).await.done();

    assert!(relay.has_lost_answer());
    let kept = login_of(&contexts(&site))["refresh_token"].clone();
    let answer = site.try_post("/auth/refresh", &json!({"refresh_token": kept})).await;
    assert!(answer["access_token"].is_string(), "what is kept is the token that works: {answer}");
}

/// Files can grow to 512 bytes: enough for a message, and too little for two tokens.
pub fn on_a_full_disk(program: &Command) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]).arg(program.get_program());
    command.args(program.get_args()).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[tokio::test]
async fn a_login_is_not_renewed_where_it_cannot_be_kept() {
    let site = signed_in().await;
    replace_token(&site, &site.expiring(login_of(&contexts(&site))["access_token"].as_str().unwrap(), -5));
    let sessions = site.get("/auth/sessions").await;

    let outcome = Running::start(on_a_full_disk(&site.plain_command(&["servers"]))).outcome().await;

    outcome.refused(1, "cannot write");
    assert_eq!(site.get("/auth/sessions").await, sessions, "the login was not used");
    site.run_plain(&["servers"]).await.done();
}

#[tokio::test]
async fn a_stream_continues_with_a_newer_token() {
    let site = signed_in().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let before = contexts(&site);
    // The service says so 60 s before.
    replace_token(&site, &site.expiring(login_of(&before)["access_token"].as_str().unwrap(), 62));
    let gate = agent.state.path().join("gate");
    let script = format!("echo begun; until [ -e {} ]; do sleep 0.05; done; echo ended", gate.display());

    let running = Running::start(site.plain_command(&["exec", "web-1", "--", &script]));
    running.until("begun").await;
    let renewed = eventually("the login is renewed", async || {
        (login_of(&contexts(&site))["refresh_token"] != login_of(&before)["refresh_token"]).then_some(())
    });
    renewed.await;
    fs::write(gate, "").unwrap();

    assert_eq!(running.outcome().await.done(), "begun\nended\n");
}

#[tokio::test]
async fn a_token_that_nobody_can_renew_ends_a_stream_with_a_reason() {
    let site = Site::start().await;
    let mut command = site.command(&["alerts", "watch"]);
    command.env("SIGNALBOX_TOKEN", site.expiring(&site.token, 3));

    let outcome = Running::start(command).outcome().await;

    outcome.refused(1, "check SIGNALBOX_TOKEN");
}

/// The code of an authenticator app at this moment (RFC 6238).
fn code_of(secret: &str) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut bits = secret.bytes().flat_map(|letter| {
        let value = alphabet.iter().position(|known| *known == letter).unwrap();
        (0..5).rev().map(move |bit| u8::try_from(value >> bit & 1).unwrap())
    });
    let bytes: Vec<u8> =
        (0..secret.len() * 5 / 8).map(|_| (0..8).fold(0, |byte, _| byte << 1 | bits.next().unwrap())).collect();
    let step = u64::try_from(Timestamp::now().as_seconds() / 30).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    let digest = hmac::sign(&key, &step.to_be_bytes());
    let digest = digest.as_ref();
    let at = usize::from(digest[19] & 15);
    let number = u32::from_be_bytes(digest[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

#[tokio::test]
async fn an_account_with_an_authenticator_app_needs_its_code() {
    let site = Site::start().await;
    let secret = site.post("/auth/totp", &json!({})).await["secret"].as_str().unwrap().to_owned();
    let confirmed = site.post("/auth/totp/confirm", &json!({"otp": code_of(&secret)})).await;
    let recovery = confirmed["recovery_codes"][0].as_str().unwrap();
    let password = site.secret_file("password", PASSWORD);
    let arguments = ["login", &site.url, "--username", "ada", "--password-file", &password];

    let without = site.run_plain(&arguments).await;
    let wrong = site.run_plain(&[&arguments[..], &["--otp", "nonsense"]].concat()).await;
    let with = site.run_plain(&[&arguments[..], &["--otp", recovery]].concat()).await;

    without.refused(2, "add --otp");
    wrong.refused(1, "signalboxctl: ");
    with.done();
}

#[tokio::test]
async fn a_person_at_a_terminal_is_asked_and_the_password_is_not_shown() {
    let site = Site::start().await;
    let mut terminal = Terminal::start_plain(&site, &["login", &site.url]);

    terminal.until("User name (empty if you have a token): ").await;
    terminal.enter("ada\n");
    terminal.until("Password: ").await;
    terminal.raw().await;
    terminal.enter("wrong\u{15}");
    terminal.enter(&format!("{PASSWORD}\r"));

    assert_eq!(terminal.ended().await, Some(0), "{}", terminal.shown());
    terminal.until("Signed in to").await;
    assert!(!terminal.shown().contains("horse") && !terminal.shown().contains("wrong"), "{}", terminal.shown());
}

#[tokio::test]
async fn a_token_that_is_not_valid_is_not_renewed() {
    let site = signed_in().await;
    let before = contexts(&site);
    replace_token(&site, "a.b.c");

    let outcome = site.run_plain(&["servers"]).await;

    outcome.refused(1, &format!("sign in again with `signalboxctl login {} --name home`", site.url));
    assert_eq!(login_of(&contexts(&site))["refresh_token"], login_of(&before)["refresh_token"]);
}

#[tokio::test]
async fn contexts_are_chosen_and_forgotten() {
    let site = signed_in().await;
    let file = site.secret_file("token", &site.token);
    site.run_plain(&["login", &site.url, "--name", "second", "--token-file", &file]).await.done();
    assert_eq!(contexts(&site)["current"], "second");

    let chosen = site.run_plain(&["context", "use", "home"]).await;
    let unknown = site.run_plain(&["context", "use", "third"]).await;
    let refresh_token = contexts(&site)["contexts"]["home"]["credential"]["refresh_token"].clone();
    let forgotten = site.run_plain(&["context", "rm", "home"]).await;
    let without = site.run_plain(&["servers"]).await;

    assert_eq!(chosen.done(), "home is the current context.\n");
    unknown.refused(2, "no context \"third\": there is home, second");
    assert_eq!(forgotten.done(), "Forgot home.\n");
    without.refused(2, "not signed in");
    let answer = site.try_post("/auth/refresh", &json!({"refresh_token": refresh_token})).await;
    assert_eq!(answer["status_code"], 401, "the login has ended at the service, too: {answer}");
}

#[tokio::test]
async fn half_an_environment_and_a_service_that_is_away_are_said() {
    let site = Site::start().await;
    let mut url_alone = site.plain_command(&["servers"]);
    url_alone.env("SIGNALBOX_URL", &site.url);
    let mut nobody = site.plain_command(&["servers"]);
    nobody.env("SIGNALBOX_URL", "http://127.0.0.1:1").env("SIGNALBOX_TOKEN", "sbt_secretive");

    let url_alone = Running::start(url_alone).outcome().await;
    let nobody = Running::start(nobody).outcome().await;

    url_alone.refused(2, "SIGNALBOX_TOKEN is not");
    nobody.refused(1, "cannot reach the service: ");
    assert!(!nobody.stderr.contains("secretive"), "{nobody:?}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_named() {
    let site = Site::start().await;

    let login = site.run_plain(&["login", &site.url]).await;
    let password = site.run_plain(&["login", &site.url, "--username", "ada"]).await;
    let usage = site.run_plain(&["frobnicate"]).await;

    login.refused(2, "--token-file");
    password.refused(2, "--password-file");
    usage.refused(2, "unrecognized subcommand");
}

#[tokio::test]
async fn the_page_of_tokens_is_opened_and_its_token_is_asked_for() {
    let site = Site::start().await;
    let opened = site.home.path().join("opened");
    let opener =
        site.secret_file("xdg-open", &format!("#!/bin/sh\necho \"$@\" >{0}.new; mv {0}.new {0}\n", opened.display()));
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o700)).unwrap();
    let path = format!("{}:/usr/bin:/bin", site.home.path().display());
    let call = ["login", &site.url, "--web"];

    let mut command = site.plain_command(&call);
    command.env("PATH", &path).env("DISPLAY", ":0");
    let mut terminal = Terminal::of(&command);
    let address = eventually("the page is opened", async || fs::read_to_string(&opened).ok()).await;
    assert_eq!(address, format!("{}/account/tokens\n", site.url));
    terminal.until("Token: ").await;
    terminal.raw().await;
    terminal.enter(&format!("{}\r", site.token));
    assert_eq!(terminal.ended().await, Some(0));
    assert!(!terminal.shown().contains(&site.token), "{}", terminal.shown());
    site.run_plain(&["servers"]).await.done();

    let without_desktop = Terminal::of(site.plain_command(&call).env("PATH", &path));
    without_desktop.until("No browser could be opened: open the page yourself.").await;
    site.run_plain(&call).await.refused(2, "use --token-file");
}
