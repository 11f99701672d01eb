//! The first account of a service that other machines can reach.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use signalbox::config::Config;
use tempfile::TempDir;

use crate::support::command_line::{Launched, signalbox};
use crate::support::{Client, Storage, TestService, behind_a_proxy, registration};

/// A service that listens beyond loopback, and the code in its log.
async fn exposed(data: &TempDir) -> (Launched, Client, String) {
    let data_dir = data.path().to_str().unwrap();
    let mut service = Launched::start(signalbox(&["serve", "--listen", "0.0.0.0:0", "--data-dir", data_dir]));
    let client = service.client().await;
    let code = code_of(&service.stderr());
    (service, client, code)
}

fn code_of(log: &str) -> String {
    let line = log.lines().find(|line| line.contains("setup code")).unwrap_or_else(|| panic!("no code in {log}"));
    line.rsplit(' ').next().unwrap().to_owned()
}

fn with_code(username: &str, code: &str) -> Value {
    let mut body = registration(username);
    body["setup_code"] = code.into();
    body
}

#[actix_web::test]
async fn only_who_reads_the_log_makes_the_first_account() {
    let data = TempDir::new().unwrap();
    let (_service, client, code) = exposed(&data).await;
    let told = client.get("/service").expect(200).await;
    assert_eq!((&told["needs_setup"], &told["setup_code_required"]), (&json!(true), &json!(true)));

    client.post("/auth/register").json(registration("alice")).expect_error(403, "setup_required").await;
    for wrong in ["", "00000-00000-00000-00000", &code[1..]] {
        client.post("/auth/register").json(with_code("alice", wrong)).expect_error(403, "setup_required").await;
    }
    let made = client.post("/auth/register").json(with_code("alice", &code)).expect(201).await;

    let token = made["access_token"].as_str().unwrap();
    assert_eq!(client.get("/auth/me").bearer(token).expect(200).await["is_admin"], true);
    let told = client.get("/service").expect(200).await;
    assert_eq!((&told["needs_setup"], &told["setup_code_required"]), (&json!(false), &json!(false)));
    // Later accounts need none, and it opens nothing.
    client.post("/auth/register").json(registration("bob")).expect(201).await;
    let carol = client.post("/auth/register").json(with_code("carol", &code)).expect(201).await;
    let token = carol["access_token"].as_str().unwrap();
    assert_eq!(client.get("/auth/me").bearer(token).expect(200).await["is_admin"], false);
}

#[actix_web::test]
async fn the_log_has_the_code_whatever_its_filter_names_and_an_address_that_can_be_opened() {
    for filter in ["nosuch=debug", "signalbx=trace", "warn"] {
        let data = TempDir::new().unwrap();
        let serve = ["serve", "--listen", "0.0.0.0:0", "--log", filter, "--data-dir", data.path().to_str().unwrap()];
        let mut service = Launched::start(signalbox(&serve));
        let port = service.address().await.port();

        let log = service.stderr();
        let expected = format!("create the administrator's at port {port} of this machine with the setup code ");
        assert!(log.contains(&expected) && !log.contains("http://0.0.0.0"), "{filter}: {log}");
    }
}

#[actix_web::test]
async fn the_code_is_the_same_after_a_restart_and_gone_with_the_first_account() {
    let data = TempDir::new().unwrap();
    let (first, _, code) = exposed(&data).await;
    first.signal("TERM");
    assert_eq!(first.outcome().await.code, Some(0));
    let (second, client, again) = exposed(&data).await;
    assert_eq!(again, code);
    client.post("/auth/register").json(with_code("alice", &code)).expect(201).await;
    second.signal("TERM");
    second.outcome().await;

    let data_dir = data.path().to_str().unwrap();
    let mut third = Launched::start(signalbox(&["serve", "--listen", "0.0.0.0:0", "--data-dir", data_dir]));
    third.address().await;

    assert!(!third.stderr().contains("setup code"), "{}", third.stderr());
}

#[actix_web::test]
async fn wrong_codes_are_checked_ten_times_a_minute() {
    let service = TestService::start_with(|config| config.listen = "0.0.0.0:0".parse().unwrap()).await;
    let register = |code: &str| service.client.post("/auth/register").json(with_code("alice", code));

    for _ in 0..10 {
        register("wrong").expect_error(403, "setup_required").await;
    }

    register("wrong").expect_error(503, "busy").await;
}

/// Settings for users from elsewhere, although the service listens on loopback.
const PUBLIC: [fn(&mut Config); 2] =
    [|config| config.public_url = Some("https://box.example.com".to_owned()), behind_a_proxy];

#[actix_web::test]
async fn a_service_on_loopback_that_is_to_be_public_needs_the_code() {
    for adjust in PUBLIC {
        let service = TestService::start_with(adjust).await;
        assert_eq!(service.client.get("/service").expect(200).await["setup_code_required"], true);

        for register in [registration("alice"), with_code("alice", "00000-00000-00000-00000")] {
            service.client.post("/auth/register").json(register).expect_error(403, "setup_required").await;
        }

        let told = service.client.get("/service").expect(200).await;
        assert_eq!((&told["needs_setup"], &told["setup_code_required"]), (&json!(true), &json!(true)));
        service.client.post("/auth/register").json(service.registration("alice")).expect(201).await;
    }
}

#[actix_web::test]
async fn a_request_that_a_proxy_passed_on_needs_the_code_whatever_the_settings() {
    for (name, value) in [
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "box.example.com"),
        ("Forwarded", "for=203.0.113.9"),
        ("X-Real-IP", "203.0.113.9"),
        ("Via", "1.1 proxy"),
    ] {
        let service = TestService::start().await;
        let told = service.client.get("/service").header(name, value).expect(200).await;
        assert_eq!((&told["needs_setup"], &told["setup_code_required"]), (&json!(true), &json!(true)), "{name}");
        let register = |body: Value| service.client.post("/auth/register").json(body).header(name, value);

        register(registration("alice")).expect_error(403, "setup_required").await;
        register(service.registration("alice")).expect(201).await;

        register(registration("bob")).expect(201).await;
    }
}

#[actix_web::test]
async fn the_log_of_the_documented_proxy_setup_has_the_code() {
    let data = TempDir::new().unwrap();
    let proxy = ["--public-url", "https://box.example.com", "--trusted-proxies", "127.0.0.1"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.path().to_str().unwrap()];
    let mut service = Launched::start(signalbox(&[&serve[..], &proxy[..]].concat()));
    let client = service.client().await;

    let code = code_of(&service.stderr());

    client.post("/auth/register").json(registration("alice")).expect_error(403, "setup_required").await;
    client.post("/auth/register").json(with_code("alice", &code)).expect(201).await;
}

#[actix_web::test]
async fn on_loopback_and_with_an_account_nobody_is_asked_for_a_code() {
    let service = TestService::start().await;
    assert_eq!(service.client.get("/service").expect(200).await["setup_code_required"], false);
    service.client.post("/auth/register").json(registration("alice")).expect(201).await;

    let beyond = |config: &mut signalbox::config::Config| config.listen = "0.0.0.0:0".parse().unwrap();
    let service = TestService::start_on(service.stop().await, beyond).await;

    assert_eq!(service.client.get("/service").expect(200).await["setup_code_required"], false);
    service.client.post("/auth/register").json(registration("bob")).expect(201).await;
}

#[actix_web::test]
async fn instances_of_one_secret_have_one_code() {
    let (one, other) = (Storage::fresh().await, Storage::fresh().await);
    let secrets = TempDir::new().unwrap();
    let file = secrets.path().join("jwt-secret");
    crate::support::write_private(&file, &"0f".repeat(32));
    let mut codes = Vec::new();

    for storage in [one, other] {
        let service = TestService::start_on(storage, |config| {
            config.listen = "0.0.0.0:0".parse().unwrap();
            config.jwt_secret_file = Some(file.clone());
        })
        .await;
        codes.push(service.state.accounts.setup.code().expose_secret().to_owned());
    }

    assert_eq!(codes[0], codes[1]);
}
