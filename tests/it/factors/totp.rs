//! Authenticator apps and recovery codes.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{entries, execute, factors_of, in_session, login, set_up_app};
use crate::support::{PASSWORD, TestService, eventually, keys_of, text_of};

#[actix_web::test]
async fn a_login_needs_a_code_once_the_app_is_confirmed() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let setup = service.client.post("/auth/totp").bearer(&ada.token).expect(200).await;
    let secret = text_of(&setup["secret"]);

    let url =
        format!("otpauth://totp/Signalbox:ada?secret={secret}&issuer=Signalbox&algorithm=SHA1&digits=6&period=30");
    assert_eq!(setup, json!({"secret": secret, "otpauth_url": url}));
    login(&service, "ada", None).expect(200).await;
    let (app, codes) = set_up_app(&service, &ada).await;

    assert_eq!(codes.len(), 10);
    let missing = login(&service, "ada", None).expect_error(401, "otp_required").await;
    assert_eq!(missing["detail"], "Enter the code of your authenticator app");
    let wrong = login(&service, "ada", Some("000000")).expect_error(401, "invalid_credentials").await;
    let form = [("username", "ada"), ("password", "not the password"), ("otp", &app.code(0))];
    let wrong_password = service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await;
    assert_eq!(wrong, wrong_password);
    let tokens = login(&service, "ada@example.com", Some(&app.code(0))).expect(200).await;
    assert_eq!(keys_of(&tokens), ["access_token", "refresh_token", "token_type"]);
    let session = in_session(&ada, &tokens);
    assert_eq!(factors_of(&service, &session).await, json!({"totp": true, "passkeys": 0, "recovery_codes_left": 10}));
    let sessions = service.client.get("/auth/sessions").bearer(&session.token).expect(200).await;
    let means: Vec<&str> =
        sessions.as_array().unwrap().iter().map(|session| session["means"].as_str().unwrap()).collect();
    assert_eq!(means, ["password_otp", "password", "password"]);
    assert_eq!(entries(&service, &ada, "totp.create").await.len(), 1);
    assert_eq!(means_of(&entries(&service, &ada, "login").await)[0], "password_otp");
}

#[actix_web::test]
async fn a_code_works_once_and_a_step_early_or_late() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let (app, _) = set_up_app(&service, &ada).await;

    let (now, next) = (app.code(0), app.code(1));
    login(&service, "ada", Some(&now)).expect(200).await;
    login(&service, "ada", Some(&now)).expect_error(401, "invalid_credentials").await;
    login(&service, "ada", Some(&next)).expect(200).await;
    login(&service, "ada", Some(&now)).expect_error(401, "invalid_credentials").await;
    login(&service, "ada", Some(&app.code(5))).expect_error(401, "invalid_credentials").await;
    login(&service, "ada", Some(&app.code(-5))).expect_error(401, "invalid_credentials").await;
}

#[actix_web::test]
async fn of_logins_with_one_code_at_the_same_time_one_wins() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let (app, codes) = set_up_app(&service, &ada).await;

    for code in [app.code(0), codes[0].clone()] {
        let answers = join_all((0..6).map(|_| login(&service, "ada", Some(&code)).send())).await;

        let won = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(won, 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    }
}

#[actix_web::test]
async fn each_recovery_code_works_once() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let (_, codes) = set_up_app(&service, &ada).await;

    login(&service, "ada", Some(&codes[3])).expect(200).await;
    login(&service, "ada", Some(&codes[3])).expect_error(401, "invalid_credentials").await;
    login(&service, "ada", Some(&codes[4].replace('-', " ").to_uppercase())).expect(200).await;

    assert_eq!(factors_of(&service, &ada).await["recovery_codes_left"], 8);
    assert_eq!(entries(&service, &ada, "recovery_code.use").await.len(), 2);
    assert_eq!(means_of(&entries(&service, &ada, "login").await)[0], "password_recovery_code");
}

#[actix_web::test]
async fn wrong_codes_stop_all_codes_for_a_while() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let (app, codes) = set_up_app(&service, &ada).await;
    for _ in 0..10 {
        login(&service, "ada", Some("000000")).expect_error(401, "invalid_credentials").await;
    }

    let body = login(&service, "ada", Some(&app.code(0))).expect_error(503, "busy").await;

    assert_eq!(body["detail"], "Too many wrong codes; try again in 15 minutes");
    // As if ten minutes had passed, and then a quarter of an hour.
    execute(&service, "UPDATE totp_secrets SET failing_since = failing_since - 600000").await;
    let later = login(&service, "ada", Some(&codes[0])).send().await;
    let seconds: u32 = later.header("Retry-After").parse().unwrap();
    assert!(later.status == 503 && (1..=300).contains(&seconds), "{later}: {seconds} s");
    execute(&service, "UPDATE totp_secrets SET failing_since = failing_since - 300000").await;
    login(&service, "ada", Some("000000")).expect_error(401, "invalid_credentials").await;
    login(&service, "ada", Some(&app.code(0))).expect(200).await;
    let refused = eventually("a refusal is recorded", async || {
        let logins = entries(&service, &ada, "login").await.into_iter();
        Some(logins.filter(|entry| entry["outcome"] == "refused").count()).filter(|count| *count > 0)
    })
    .await;
    assert_eq!(refused, 1, "one a minute is recorded");
}

#[actix_web::test]
async fn an_empty_code_of_a_form_is_a_missing_one_and_one_of_any_other_length_is_wrong() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    login(&service, "ada", Some("")).expect(200).await;
    let (app, _) = set_up_app(&service, &ada).await;

    login(&service, "ada", Some("")).expect_error(401, "otp_required").await;
    let too_long = [("body", "otp", "value_error.any_str.max_length")];
    login(&service, "ada", Some(&"1".repeat(8_193))).expect_faults(422, &too_long).await;
    for length in [1, 2, 5, 7, 8, 63, 64, 65, 1_000, 8_192] {
        login(&service, "ada", Some(&"1".repeat(length))).expect_error(401, "invalid_credentials").await;
    }
    // Each of the ten counted.
    login(&service, "ada", Some(&app.code(0))).expect_error(503, "busy").await;
}

#[actix_web::test]
async fn an_app_is_confirmed_once_and_removed_with_password_and_code() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let confirm = |otp: &str| service.client.post("/auth/totp/confirm").bearer(&ada.token).json(json!({"otp": otp}));
    confirm("123456").expect_error(400, "bad_request").await;
    let (app, codes) = set_up_app(&service, &ada).await;

    confirm(&app.code(0)).expect_error(400, "bad_request").await;
    service.client.post("/auth/totp").bearer(&ada.token).expect_error(400, "bad_request").await;
    let remove = |password: &str, otp: &str| {
        let body = json!({"password": password, "otp": otp});
        service.client.delete("/auth/totp").bearer(&ada.token).json(body)
    };
    let code_alone = json!({"otp": codes[0]});
    let without_password = service.client.delete("/auth/totp").bearer(&ada.token).json(code_alone);
    without_password.expect_faults(422, &[("body", "password", "value_error.missing")]).await;
    remove("not the password", &app.code(0)).expect_error(400, "invalid_credentials").await;
    remove(PASSWORD, "000000").expect_error(400, "invalid_credentials").await;
    remove(PASSWORD, &codes[0]).expect(200).await;
    remove(PASSWORD, &codes[1]).expect_error(400, "bad_request").await;

    login(&service, "ada", None).expect(200).await;
    assert_eq!(factors_of(&service, &ada).await, json!({"totp": false, "passkeys": 0, "recovery_codes_left": 0}));
    let deletions = eventually("the refusal is recorded", async || {
        let deletions = entries(&service, &ada, "totp.delete").await;
        deletions.iter().any(|entry| entry["outcome"] == "refused").then_some(deletions)
    })
    .await;
    assert_eq!(deletions.len(), 2, "one refused, one done");
}

#[actix_web::test]
async fn a_session_without_the_second_factor_does_not_replace_it() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let weak = service.sign_in(&ada).await;
    let (app, _) = set_up_app(&service, &ada).await;

    let register = || service.client.post("/auth/passkeys/registration").bearer(&weak.token);
    register().expect_error(403, "step_up_required").await;
    service.client.post("/auth/totp").bearer(&weak.token).expect_error(403, "step_up_required").await;
    let prove = |body| service.client.post("/auth/step-up").bearer(&weak.token).json(body);
    prove(json!({"password": PASSWORD})).expect(200).await;
    register().expect_error(403, "step_up_required").await;
    prove(json!({"otp": "000000"})).expect_error(400, "invalid_credentials").await;
    prove(json!({"otp": app.code(0)})).expect(200).await;

    register().expect(200).await;
    assert_eq!(means_of(&entries(&service, &ada, "session.prove").await), ["otp", "password"]);
}

#[actix_web::test]
async fn secrets_and_codes_are_not_in_the_database() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let setup = service.client.post("/auth/totp").bearer(&ada.token).expect(200).await;
    let secret = text_of(&setup["secret"]);
    let app = crate::support::authenticator::App::new(&secret);
    let body = json!({"otp": app.code(0)});
    let done = service.client.post("/auth/totp/confirm").bearer(&ada.token).json(body).expect(200).await;
    let code = text_of(&done["recovery_codes"][0]);

    let storage = service.stop().await;
    let store = storage.store().await;
    let totp = store.find_totp(ada.id).await.unwrap().unwrap();

    assert!(!contains(&totp.sealed, app.secret()));
    store.close().await;
    for entry in std::fs::read_dir(storage.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        for secret in [secret.as_bytes(), app.secret(), code.as_bytes(), code.replace('-', "").as_bytes()] {
            assert!(!contains(&bytes, secret));
        }
    }
}

/// The means of what succeeded, newest first. What was refused is written a moment later.
fn means_of(entries: &[Value]) -> Vec<&str> {
    let succeeded = entries.iter().filter(|entry| entry["outcome"] != "refused");
    succeeded.filter_map(|entry| entry["detail"]["means"].as_str()).collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
