//! `/auth/totp`, `/auth/passkeys` and `/auth/step-up`: second factors, and who must prove what.

mod log;
mod passkeys;
mod policy;
mod totp;

use sea_orm::{ConnectionTrait, Database};
use serde_json::{Value, json};

use crate::support::authenticator::{App, Device};
use crate::support::rest::Call;
use crate::support::storage::direct;
use crate::support::{Account, PASSWORD, TestService, text_of};

/// Sets up an authenticator app. Returns it with the recovery codes.
async fn set_up_app(service: &TestService, account: &Account) -> (App, Vec<String>) {
    let setup = service.client.post("/auth/totp").bearer(&account.token).expect(200).await;
    let app = App::new(&text_of(&setup["secret"]));
    let body = json!({"otp": app.code(0)});
    let done = service.client.post("/auth/totp/confirm").bearer(&account.token).json(body).expect(200).await;
    let codes = done["recovery_codes"].as_array().unwrap().iter().map(text_of).collect();
    // The tests show several codes within a step, of which each counts once.
    execute(service, "UPDATE totp_secrets SET last_step = 0").await;
    (app, codes)
}

/// Makes a passkey.
async fn add_passkey(service: &TestService, account: &Account) -> Device {
    let device = Device::new();
    let options = service.client.post("/auth/passkeys/registration").bearer(&account.token).expect(200).await;
    let body = json!({"name": "key", "credential": device.make(&options)});
    service.client.post("/auth/passkeys").bearer(&account.token).json(body).expect(201).await;
    device
}

fn login(service: &TestService, username: &str, otp: Option<&str>) -> Call {
    let mut form = vec![("username", username), ("password", PASSWORD)];
    form.extend(otp.map(|otp| ("otp", otp)));
    service.client.post("/auth/login").form(&form)
}

async fn passkey_login(service: &TestService, device: &mut Device) -> Call {
    let options = service.client.post("/auth/passkeys/challenge").expect(200).await;
    let credential = device.sign(&options);
    service.client.post("/auth/passkeys/login").json(json!({"credential": credential}))
}

/// The same account in the session of these tokens.
fn in_session(account: &Account, tokens: &Value) -> Account {
    Account {
        token: text_of(&tokens["access_token"]),
        refresh_token: text_of(&tokens["refresh_token"]),
        ..account.clone()
    }
}

async fn factors_of(service: &TestService, account: &Account) -> Value {
    service.client.get("/auth/me").bearer(&account.token).expect(200).await["second_factor"].clone()
}

/// The entries of the audit log with this action, newest first.
async fn entries(service: &TestService, account: &Account, action: &str) -> Vec<Value> {
    let found = service.client.get("/audit").query(&[("action", action)]).bearer(&account.token).expect(200).await;
    found.as_array().unwrap().clone()
}

pub async fn execute(service: &TestService, statement: &str) {
    let database = Database::connect(direct(&service.state.config.database_url())).await.unwrap();
    database.execute_unprepared(statement).await.unwrap();
    database.close().await.unwrap();
}
