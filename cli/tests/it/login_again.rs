//! Signing in where something is already kept, or where nothing can be.

use std::fs;

use serde_json::{Value, json};

use crate::exec_outages::{Interceptor, NO_ANSWER};
use crate::login::{contexts, contexts_file, login_of, on_a_full_disk, replace_token, signed_in};
use crate::support::{PASSWORD, Running, Site};

/// The sessions of the account.
async fn sessions(site: &Site) -> Vec<Value> {
    let listed = site.get("/auth/sessions").await;
    listed.as_array().unwrap().iter().map(|session| session["id"].clone()).collect()
}

#[tokio::test]
async fn signing_in_again_leaves_the_login_before_to_those_who_use_it() {
    let site = signed_in().await;
    let password = site.secret_file("password", PASSWORD);
    let login = ["login", &site.url, "--context", "home", "--username", "ada", "--password-file", &password];
    let known = sessions(&site).await.len();
    let before = login_of(&contexts(&site)).clone();

    let again = site.run_plain(&login).await;

    assert_eq!(again.done(), format!("Signed in to {} as the context home.\n", site.url));
    assert_eq!(sessions(&site).await.len(), known + 1);
    let renewed = site.try_post("/auth/refresh", &json!({"refresh_token": before["refresh_token"]})).await;
    assert!(renewed["access_token"].is_string(), "{renewed}");
    site.run_plain(&["servers"]).await.done();
    assert_eq!(contexts(&site)["contexts"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn a_login_that_has_ended_already_is_replaced_without_a_word() {
    let site = signed_in().await;
    let password = site.secret_file("password", PASSWORD);
    replace_token(&site, "a.b.c");
    let before = login_of(&contexts(&site))["refresh_token"].clone();
    site.try_post("/auth/logout", &json!({"refresh_token": before})).await;

    let login = ["login", &site.url, "--name", "home", "--username", "ada", "--password-file", &password];
    site.run_plain(&login).await.done();
}

#[tokio::test]
async fn a_login_that_cannot_be_kept_is_ended() {
    let site = Site::start().await;
    let password = site.secret_file("password", PASSWORD);
    let known = sessions(&site).await;
    let login = site.plain_command(&["login", &site.url, "--username", "ada", "--password-file", &password]);

    let outcome = Running::start(on_a_full_disk(&login)).outcome().await;

    outcome.refused(1, "cannot write");
    assert!(!outcome.stderr.contains("may not have ended"), "{outcome:?}");
    assert_eq!(sessions(&site).await, known);
    assert!(!contexts_file(&site).exists());
}

#[tokio::test]
async fn a_login_that_ctrl_c_interrupts_before_it_is_kept_is_ended() {
    let site = Site::start().await;
    let password = site.secret_file("password", PASSWORD);
    let known = sessions(&site).await;
    let way = Interceptor::start(&site, "GET /api/v1/servers", NO_ANSWER).await;
    let address = way.url();
    let login = ["login", &address, "--username", "ada", "--password-file", &password];
    let running = Running::start(site.plain_command(&login));
    way.until_caught().await;
    assert_eq!(sessions(&site).await.len(), known.len() + 1);

    running.signal("INT");
    let outcome = running.outcome().await;

    outcome.refused(130, "signalboxctl: interrupted\n");
    assert_eq!(sessions(&site).await, known);
    assert!(!contexts_file(&site).exists());
}

#[tokio::test]
async fn nobody_signs_in_where_no_login_can_be_kept() {
    let site = Site::start().await;
    // Its refusal would be another one.
    let wrong = site.secret_file("password", "wrong horse");
    let mut login = site.plain_command(&["login", &site.url, "--username", "ada", "--password-file", &wrong]);
    login.env("XDG_CONFIG_HOME", &wrong);

    let outcome = Running::start(login).outcome().await;

    outcome.refused(1, "cannot lock");
}

#[tokio::test]
async fn the_context_of_another_service_is_not_replaced() {
    let site = signed_in().await;
    let wrong = site.secret_file("password", "wrong horse");
    let mut all = contexts(&site);
    all["contexts"]["home"]["url"] = json!("http://127.0.0.1:1");
    fs::write(contexts_file(&site), all.to_string()).unwrap();
    let login = ["login", &site.url, "--name", "home", "--username", "ada", "--password-file", &wrong];

    let other = site.run_plain(&login).await;
    let two = site.run_plain(&[&login[..], &["--context", "work"]].concat()).await;

    other.refused(2, "the context \"home\" is of http://127.0.0.1:1: choose another name with --name");
    two.refused(2, "--name and --context name two contexts");
    assert_eq!(contexts(&site), all);
}
