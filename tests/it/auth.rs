//! `POST /auth/register`.

use serde_json::{Value, json};
use signalbox::config::Registration;

use crate::support::tokens::{claims_of, header_of};
use crate::support::{PASSWORD, TestService, registration, text_of, uuid_of};

/// The longest address: a local part of 64 and a domain of 189 characters.
fn email_of_254() -> String {
    format!("{}@{}.{}.{}.com", "u".repeat(64), "a".repeat(63), "b".repeat(63), "c".repeat(57))
}

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut body = registration("alice");
    body[field] = value.into();
    body
}

fn with_password(password: &str) -> Value {
    let mut body = with("password", password);
    body["password_confirm"] = password.into();
    body
}

#[actix_web::test]
async fn registration_answers_the_user_and_a_token_pair() {
    let service = TestService::start().await;

    let answer = service.client.post("/auth/register").json(registration("alice")).expect(201).await;

    let user = &answer["user"];
    assert_eq!(uuid_of(&user["id"]).get_version_num(), 7);
    assert_eq!(user["email"], "alice@example.com");
    assert_eq!(user["username"], "alice");
    assert_eq!(user["full_name"], "Test Person");
    assert_eq!(answer["token_type"], "bearer");
    for (field, typ, lifetime) in [("access_token", "access", 30 * 60), ("refresh_token", "refresh", 7 * 24 * 3600)] {
        let token = text_of(&answer[field]);
        let claims = claims_of(&token);
        assert_eq!(header_of(&token)["alg"], "HS256");
        assert_eq!(claims["sub"], user["id"]);
        assert_eq!(claims["typ"], typ);
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), lifetime);
        assert!(claims["sid"].is_string() && claims["jti"].is_string(), "{claims}");
    }
}

#[actix_web::test]
async fn the_answer_never_holds_the_password() {
    let service = TestService::start().await;

    let answer = service.client.post("/auth/register").json(registration("alice")).expect_answer(201).await;

    assert!(!answer.text.contains(PASSWORD), "{answer}");
    assert!(!answer.text.contains("pbkdf2"), "{answer}");
}

#[actix_web::test]
async fn only_the_first_account_is_the_administrator() {
    let service = TestService::start().await;

    let first = service.register("alice").await;
    let second = service.register("bob").await;

    assert_eq!(service.client.get("/auth/me").bearer(&first.token).expect(200).await["is_admin"], true);
    assert_eq!(service.client.get("/auth/me").bearer(&second.token).expect(200).await["is_admin"], false);
}

#[actix_web::test]
async fn of_many_first_accounts_at_once_one_is_the_administrator() {
    let service = TestService::start().await;
    let names: Vec<String> = (0..8).map(|number| format!("user-{number}")).collect();

    let accounts = futures_util::future::join_all(names.iter().map(|name| service.register(name))).await;

    let mut administrators = 0;
    for account in &accounts {
        let me = service.client.get("/auth/me").bearer(&account.token).expect(200).await;
        administrators += usize::from(me["is_admin"] == true);
    }
    assert_eq!(administrators, 1);
}

#[actix_web::test]
async fn a_body_cannot_make_itself_the_administrator() {
    let service = TestService::start().await;
    service.register("alice").await;
    let mut body = registration("mallory");
    body["is_admin"] = true.into();

    let answer = service.client.post("/auth/register").json(body).expect(201).await;

    let me = service.client.get("/auth/me").bearer(&text_of(&answer["access_token"])).expect(200).await;
    assert_eq!(me["is_admin"], false);
}

#[actix_web::test]
async fn values_at_their_limits_are_taken() {
    let service = TestService::start().await;
    let bodies = [
        with("username", "abc"),
        with("username", "u".repeat(64)),
        with("username", "A_z.9-"),
        with_password("12345678"),
        with_password(&"p".repeat(128)),
        with_password(&"ä".repeat(8)),
        with_password(&"ä".repeat(128)),
        with("full_name", ""),
        with("full_name", "n".repeat(200)),
        with("full_name", "ä".repeat(200)),
        with("email", email_of_254()),
        with("email", "first.last+tag@mail.example.co.uk"),
        with("email", "o'hara@example.org"),
    ];

    for (number, mut body) in bodies.into_iter().enumerate() {
        // A value that a case does not test must differ from those of earlier cases.
        if body["username"] == "alice" {
            body["username"] = format!("user-{number}").into();
        }
        if body["email"] == "alice@example.com" {
            body["email"] = format!("user-{number}@example.com").into();
        }
        let answer = service.client.post("/auth/register").json(body.clone()).expect(201).await;
        assert_eq!(answer["user"]["full_name"], body["full_name"]);
    }
}

#[actix_web::test]
async fn a_value_beyond_its_limits_is_the_one_fault() {
    let service = TestService::start().await;
    let mut cases = vec![
        ("full_name", with("full_name", "n".repeat(201)), "value_error.*"),
        ("password", with_password("1234567"), "value_error.*"),
        ("password", with_password(&"p".repeat(129)), "value_error.*"),
        ("password", with_password(&"ä".repeat(7)), "value_error.*"),
        ("password_confirm", with("password_confirm", "another password"), "value_error.*"),
        ("email", with("email", format!("{}.org", email_of_254())), "value_error.*"),
        ("email", with("email", format!("{}@example.com", "u".repeat(65))), "value_error.*"),
    ];
    for username in ["", "ab", &"u".repeat(65), "al ice", "al@ice", "älice", "alice\n", "al/ice"] {
        cases.push(("username", with("username", username), "value_error.*"));
    }
    for email in ["plain", "@example.com", "alice@", "al ice@example.com", "a@@example.com", "a..b@example.com"] {
        cases.push(("email", with("email", email), "value_error.email"));
    }
    for email in ["a@exa!mple.com", "a@exa_mple.com", "a@[x]"] {
        cases.push(("email", with("email", email), "value_error.email"));
    }

    for (field, body, kind) in cases {
        service.client.post("/auth/register").json(body).expect_faults(422, &[("body", field, kind)]).await;
    }
}

#[actix_web::test]
async fn all_faults_come_in_one_answer() {
    let service = TestService::start().await;
    let body = json!({
        "email": "plain",
        "username": "a",
        "password": "short",
        "password_confirm": "short",
        "full_name": "n".repeat(201),
    });

    let faults = [
        ("body", "email", "value_error.email"),
        ("body", "username", "value_error.*"),
        ("body", "password", "value_error.*"),
        ("body", "full_name", "value_error.*"),
    ];
    service.client.post("/auth/register").json(body).expect_faults(422, &faults).await;

    let unequal = json!({
        "email": "plain",
        "username": "alice",
        "password": "correct horse",
        "password_confirm": "other",
        "full_name": "",
    });
    let faults =
        [("body", "email", "value_error.email"), ("body", "password_confirm", "value_error.password_mismatch")];
    service.client.post("/auth/register").json(unequal).expect_faults(422, &faults).await;
    let short_and_unequal = json!({
        "email": "a@example.com",
        "username": "alice",
        "password": "short",
        "password_confirm": "other",
        "full_name": "",
    });
    let faults = [
        ("body", "password", "value_error.any_str.min_length"),
        ("body", "password_confirm", "value_error.password_mismatch"),
    ];
    service.client.post("/auth/register").json(short_and_unequal).expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn every_wrong_type_is_a_fault() {
    let service = TestService::start().await;
    let body = json!({"email": 1, "username": ["a"], "password": {}, "password_confirm": true, "full_name": 5});

    let faults =
        ["email", "username", "password", "password_confirm", "full_name"].map(|field| ("body", field, "type_error.*"));
    service.client.post("/auth/register").json(body).expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn what_is_missing_is_named() {
    let service = TestService::start().await;
    let missing = [
        ("body.email", "value_error.missing"),
        ("body.username", "value_error.missing"),
        ("body.password", "value_error.missing"),
    ];

    service.client.post("/auth/register").json(json!({})).expect_some_faults(422, &missing).await;
}

#[actix_web::test]
async fn names_are_unique_without_regard_to_case() {
    let service = TestService::start().await;
    service.register("alice").await;
    let mut same_email = registration("bob");
    same_email["email"] = "ALICE@Example.COM".into();
    let mut same_username = registration("bob");
    same_username["username"] = "Alice".into();

    service.client.post("/auth/register").json(same_email).expect_error(400, "email_taken").await;
    service.client.post("/auth/register").json(same_username).expect_error(400, "username_taken").await;
    service.register("bob").await;
}

#[actix_web::test]
async fn of_many_equal_registrations_at_once_one_succeeds() {
    let service = TestService::start().await;

    let calls = (0..8).map(|_| service.client.post("/auth/register").json(registration("alice")).send());
    let answers = futures_util::future::join_all(calls).await;

    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 1);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(answer.status, 400, "{answer}");
        assert!(["email_taken", "username_taken"].contains(&answer.json()["code"].as_str().unwrap()), "{answer}");
    }
}

#[actix_web::test]
async fn closed_registration_takes_the_first_account_alone() {
    let service = TestService::start_with(|config| config.registration = Registration::Closed).await;

    let first = service.register("alice").await;
    let second = service.client.post("/auth/register").json(registration("bob"));

    second.expect_error(403, "registration_closed").await;
    assert_eq!(service.client.get("/auth/me").bearer(&first.token).expect(200).await["is_admin"], true);
}

#[actix_web::test]
async fn closed_registration_cannot_be_raced() {
    let service = TestService::start_with(|config| config.registration = Registration::Closed).await;

    let calls =
        (0..8).map(|number| service.client.post("/auth/register").json(registration(&format!("user-{number}"))).send());
    let mut statuses: Vec<u16> =
        futures_util::future::join_all(calls).await.iter().map(|answer| answer.status).collect();

    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403, 403, 403, 403, 403, 403, 403]);
}
