//! Passkeys: made, used, refused.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{add_passkey, entries, factors_of, in_session, login, passkey_login, set_up_app};
use crate::support::authenticator::Device;
use crate::support::{PASSWORD, TestService, assert_timestamp, eventually, text_of};

#[actix_web::test]
async fn a_passkey_signs_in_without_a_name() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let options = service.client.post("/auth/passkeys/registration").bearer(&ada.token).expect(200).await;
    let mut device = Device::new();
    let body = json!({"name": "Ada's phone", "credential": device.make(&options)});
    let made = service.client.post("/auth/passkeys").bearer(&ada.token).json(body).expect(201).await;

    assert_eq!(options["rp"], json!({"id": "localhost", "name": "Signalbox"}));
    assert_eq!(options["authenticatorSelection"]["userVerification"], "required");
    assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
    assert_timestamp(&made["created_at"]);
    assert_eq!((&made["name"], &made["last_used_at"]), (&json!("Ada's phone"), &json!(null)));
    let tokens = passkey_login(&service, &mut device).await.expect(200).await;
    let session = in_session(&ada, &tokens);
    assert_eq!(factors_of(&service, &session).await, json!({"totp": false, "passkeys": 1, "recovery_codes_left": 0}));
    let listed = service.client.get("/auth/passkeys").bearer(&session.token).expect(200).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_timestamp(&listed[0]["last_used_at"]);
    assert_eq!(entries(&service, &ada, "login").await[0]["detail"]["means"], "passkey");
    assert_eq!(entries(&service, &ada, "passkey.create").await[0]["detail"], json!({"name": "Ada's phone"}));
    let again = service.client.post("/auth/passkeys/registration").bearer(&ada.token).expect(200).await;
    assert_eq!(again["excludeCredentials"].as_array().unwrap().len(), 1);
    login(&service, "ada", None).expect(200).await;
}

#[actix_web::test]
async fn passkeys_are_listed_in_pages_newest_first() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    for (known, name) in ["phone", "laptop", "key"].into_iter().enumerate() {
        let options = service.client.post("/auth/passkeys/registration").bearer(&ada.token).expect(200).await;
        assert_eq!(options["excludeCredentials"].as_array().unwrap().len(), known);
        let body = json!({"name": name, "credential": Device::new().make(&options)});
        service.client.post("/auth/passkeys").bearer(&ada.token).json(body).expect(201).await;
    }
    let list = |query: &str| service.client.get(format!("/auth/passkeys{query}")).bearer(&ada.token);
    let names = |listed: &Value| -> Vec<String> {
        listed.as_array().unwrap().iter().map(|passkey| text_of(&passkey["name"])).collect()
    };

    let page = list("?limit=1&offset=1").expect_answer(200).await;

    assert_eq!(names(&list("").expect(200).await), ["key", "laptop", "phone"]);
    assert_eq!((names(&page.json()), page.header("X-Total-Count")), (vec!["laptop".to_owned()], "3"));
    list("?limit=0").expect_faults(422, &[("query", "limit", "value_error.number.not_ge")]).await;
}

#[actix_web::test]
async fn what_an_authenticator_did_not_sign_for_this_service_is_refused() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let device = add_passkey(&service, &ada).await;
    let lies: [fn(&mut Device); 3] = [
        |device| device.origin = "https://localhost.evil.test".to_owned(),
        |device| device.host = "evil.test".to_owned(),
        |device| device.verifies = false,
    ];

    let mut device = device;
    for lie in lies {
        lie(&mut device);
        passkey_login(&service, &mut device).await.expect_error(401, "invalid_credentials").await;
        (device.origin, device.host, device.verifies) = ("http://localhost".to_owned(), "localhost".to_owned(), true);
    }
    passkey_login(&service, &mut Device::new()).await.expect_error(401, "invalid_credentials").await;
    passkey_login(&service, &mut device).await.expect(200).await;

    let mut liar = Device::new();
    for lie in lies {
        lie(&mut liar);
        let options = service.client.post("/auth/passkeys/registration").bearer(&ada.token).expect(200).await;
        let body = json!({"name": "key", "credential": liar.make(&options)});
        service.client.post("/auth/passkeys").bearer(&ada.token).json(body).expect_error(400, "bad_request").await;
        (liar.origin, liar.host, liar.verifies) = ("http://localhost".to_owned(), "localhost".to_owned(), true);
    }
}

#[actix_web::test]
async fn a_challenge_is_answered_once() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let mut device = add_passkey(&service, &ada).await;
    let options = service.client.post("/auth/passkeys/challenge").expect(200).await;
    let answers: Vec<_> = (0..5).map(|_| device.sign(&options)).collect();

    let sent = answers
        .into_iter()
        .map(|credential| service.client.post("/auth/passkeys/login").json(json!({"credential": credential})).send());
    let statuses: Vec<u16> = join_all(sent).await.iter().map(|answer| answer.status).collect();

    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 4, "{statuses:?}");
    let options = service.client.post("/auth/passkeys/registration").bearer(&ada.token).expect(200).await;
    let register = |device: &Device| {
        let body = json!({"name": "key", "credential": device.make(&options)});
        service.client.post("/auth/passkeys").bearer(&ada.token).json(body)
    };
    register(&Device::new()).expect(201).await;
    let body = register(&Device::new()).expect_error(400, "bad_request").await;
    assert!(text_of(&body["detail"]).contains("used already"), "{body}");
}

#[actix_web::test]
async fn a_challenge_is_only_for_what_it_was_asked_for() {
    let service = TestService::start().await;
    let (ada, eve) = (service.register("ada").await, service.register("eve").await);
    let mut device = add_passkey(&service, &ada).await;
    let registration = service.client.post("/auth/passkeys/registration").bearer(&ada.token).expect(200).await;

    let credential = device.sign(&registration);
    let signed = service.client.post("/auth/passkeys/login").json(json!({"credential": credential}));
    signed.expect_error(401, "invalid_credentials").await;
    let body = json!({"name": "key", "credential": Device::new().make(&registration)});
    service.client.post("/auth/passkeys").bearer(&eve.token).json(body).expect_error(400, "bad_request").await;
    let challenge = service.client.post("/auth/passkeys/challenge").expect(200).await;
    let body = json!({"name": "key", "credential": Device::new().make(&challenge)});
    service.client.post("/auth/passkeys").bearer(&ada.token).json(body).expect_error(400, "bad_request").await;
    // Nor does a passkey prove who somebody else is.
    let challenge = service.client.post("/auth/passkeys/challenge").expect(200).await;
    let body = json!({"passkey": device.sign(&challenge)});
    service.client.post("/auth/step-up").bearer(&eve.token).json(body).expect_error(400, "invalid_credentials").await;
}

#[actix_web::test]
async fn a_counter_that_goes_back_is_refused_and_recorded() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let mut device = add_passkey(&service, &ada).await;
    device.count = 7;
    passkey_login(&service, &mut device).await.expect(200).await;
    for count in [7, 6, 0] {
        device.count = count;
        passkey_login(&service, &mut device).await.expect_error(401, "invalid_credentials").await;
    }
    device.count = 8;
    passkey_login(&service, &mut device).await.expect(200).await;

    let refused = eventually("the refusal is recorded", async || {
        entries(&service, &ada, "login").await.into_iter().find(|entry| entry["outcome"] == "refused")
    })
    .await;
    assert_eq!(refused["user_id"], json!(null), "nobody has proved who they are");
    assert!(text_of(&refused["detail"]["reason"]).contains("went back"), "{refused}");
}

#[actix_web::test]
async fn a_removed_passkey_signs_nobody_in() {
    let service = TestService::start().await;
    let (ada, eve) = (service.register("ada").await, service.register("eve").await);
    let mut device = add_passkey(&service, &ada).await;
    let listed = service.client.get("/auth/passkeys").bearer(&ada.token).expect(200).await;
    let path = format!("/auth/passkeys/{}", text_of(&listed[0]["id"]));

    service.client.delete(&path).bearer(&eve.token).expect_error(404, "not_found").await;
    service.client.delete(&path).bearer(&ada.token).expect(200).await;
    service.client.delete(&path).bearer(&ada.token).expect_error(404, "not_found").await;

    passkey_login(&service, &mut device).await.expect_error(401, "invalid_credentials").await;
    assert_eq!(entries(&service, &ada, "passkey.delete").await.len(), 1);
}

#[actix_web::test]
async fn a_disabled_account_has_no_way_in() {
    let service = TestService::start().await;
    let (admin, eve) = (service.register("admin").await, service.register("eve").await);
    let mut device = add_passkey(&service, &eve).await;
    let (app, codes) = set_up_app(&service, &eve).await;
    let users = service.client.get("/users").query(&[("q", "eve")]).bearer(&admin.token).expect(200).await;
    let change = |disabled: bool| {
        let path = format!("/users/{}", text_of(&users[0]["id"]));
        service.client.put(path).bearer(&admin.token).json(json!({"disabled": disabled}))
    };

    change(true).expect(200).await;

    assert_eq!(users[0]["second_factor"], json!({"totp": true, "passkeys": 1}));
    passkey_login(&service, &mut device).await.expect_error(401, "invalid_credentials").await;
    for otp in [None, Some(app.code(0)), Some(codes[0].clone())] {
        login(&service, "eve", otp.as_deref()).expect_error(401, "invalid_credentials").await;
    }
    let proof = service.client.post("/auth/step-up").bearer(&eve.token).json(json!({"otp": app.code(0)}));
    proof.expect_error(401, "token_revoked").await;
    change(false).expect(200).await;
    let tokens = passkey_login(&service, &mut device).await.expect(200).await;
    assert_eq!(factors_of(&service, &in_session(&eve, &tokens)).await["recovery_codes_left"], 10);
    let users = service.client.get("/users").query(&[("q", "eve")]).bearer(&admin.token).expect(200).await;
    let shown = service.client.get("/auth/sessions").bearer(&in_session(&eve, &tokens).token).expect(200).await;
    assert_eq!(users[0]["last_login_at"], shown[0]["created_at"]);
}

#[actix_web::test]
async fn a_service_without_a_name_says_so() {
    let named = |public_url: Option<&'static str>| async move {
        let service = TestService::start_with(|config| {
            config.listen = "0.0.0.0:0".parse().unwrap();
            config.public_url = public_url.map(str::to_owned);
        })
        .await;
        let answer = service.client.post("/auth/passkeys/challenge").send().await;
        (answer.status, answer.json())
    };

    let (status, body) = named(None).await;
    assert_eq!((status, &body["code"]), (400, &json!("bad_request")));
    assert!(text_of(&body["detail"]).contains("--public-url"), "{body}");
    let (status, _) = named(Some("https://192.0.2.7")).await;
    assert_eq!(status, 400);
    let (status, body) = named(Some("https://box.example.com:8443")).await;
    assert_eq!((status, &body["rpId"]), (200, &json!("box.example.com")));
}

#[actix_web::test]
async fn a_passkey_needs_no_code_of_the_app() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let mut device = add_passkey(&service, &ada).await;
    let (app, _) = set_up_app(&service, &ada).await;

    let tokens = passkey_login(&service, &mut device).await.expect(200).await;

    let session = in_session(&ada, &tokens);
    // And the session may change factors.
    service.client.post("/auth/passkeys/registration").bearer(&session.token).expect(200).await;
    login(&service, "ada", None).expect_error(401, "otp_required").await;
    let body = json!({"password": PASSWORD, "otp": app.code(0)});
    service.client.delete("/auth/totp").bearer(&session.token).json(body).expect(200).await;
    login(&service, "ada", None).expect(200).await;
}

#[actix_web::test]
async fn bodies_are_checked_field_by_field() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let post = |path: &str, body| service.client.post(path).bearer(&ada.token).json(body);

    post("/auth/passkeys/login", json!({"credential": {"id": "=", "response": {"clientDataJSON": 7}}}))
        .expect_some_faults(422, &[("body.credential.id", "value_error.base64url")])
        .await;
    post("/auth/step-up", json!({})).expect_some_faults(422, &[("body.password", "value_error.missing")]).await;
    post("/auth/step-up", json!({"password": PASSWORD, "otp": "1"}))
        .expect_some_faults(422, &[("body.otp", "value_error.proof")])
        .await;
    post("/auth/step-up", json!({"otp": ""}))
        .expect_some_faults(422, &[("body.otp", "value_error.any_str.min_length")])
        .await;
    let garbage =
        json!({"name": "key", "credential": {"response": {"clientDataJSON": "e30", "attestationObject": "_w"}}});
    post("/auth/passkeys", garbage).expect_error(400, "bad_request").await;
}
