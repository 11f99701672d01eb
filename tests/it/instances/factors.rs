//! Second factors: any instance finishes what another one began, and nothing counts twice.

use futures_util::future::join_all;
use serde_json::json;

use super::{A, B, C, Scene};
use crate::support::authenticator::{App, Device};
use crate::support::cluster::Cluster;
use crate::support::{PASSWORD, registration, text_of};

#[actix_web::test]
async fn a_passkey_that_is_made_and_used_across_instances_counts_once() {
    let scene = Scene::start().await;
    let options = scene.post(A, "/auth/passkeys/registration").expect(200).await;
    let mut device = Device::new();
    let body = json!({"name": "key", "credential": device.make(&options)});
    scene.post(B, "/auth/passkeys").json(body).expect(201).await;
    let challenge = scene.client(C).post("/auth/passkeys/challenge").expect(200).await;
    let credentials = [A, B, C].map(|instance| (instance, device.sign(&challenge)));

    let sent = credentials.into_iter().map(|(instance, credential)| {
        scene.client(instance).post("/auth/passkeys/login").json(json!({"credential": credential})).send()
    });
    let mut statuses: Vec<u16> = join_all(sent).await.iter().map(|answer| answer.status).collect();

    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401, 401]);
}

#[actix_web::test]
async fn a_code_counts_at_one_instance() {
    let scene = Scene::start().await;
    let setup = scene.post(A, "/auth/totp").expect(200).await;
    let app = App::new(&text_of(&setup["secret"]));
    scene.post(B, "/auth/totp/confirm").json(json!({"otp": app.code(0)})).expect(200).await;
    let next = app.code(1);
    let form = [("username", "owner"), ("password", PASSWORD), ("otp", next.as_str())];

    let sent = [A, B, C].map(|instance| scene.client(instance).post("/auth/login").form(&form).send());
    let mut statuses: Vec<u16> = join_all(sent).await.iter().map(|answer| answer.status).collect();

    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401, 401]);
}

#[actix_web::test]
async fn a_proof_at_one_instance_holds_at_the_others_at_once() {
    let cluster = Cluster::told(3, &["--second-factor", "all"]).await;
    let client = |instance| &cluster.at(instance).client;
    let made = client(A).post("/auth/register").json(registration("owner")).expect(201).await;
    let token = text_of(&made["access_token"]);
    for instance in [A, B, C] {
        client(instance).get("/servers").bearer(&token).expect_error(403, "second_factor_required").await;
    }

    let setup = client(A).post("/auth/totp").bearer(&token).expect(200).await;
    let body = json!({"otp": App::new(&text_of(&setup["secret"])).code(0)});
    client(B).post("/auth/totp/confirm").bearer(&token).json(body).expect(200).await;

    for instance in [A, B, C] {
        client(instance).get("/servers").bearer(&token).expect(200).await;
    }
}
