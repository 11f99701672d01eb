//! Sign-in at an identity provider with several instances: none of them remembers what another has to know.

use signalbox::config::OidcConfig;

use crate::oidc::browser::Browser;
use crate::oidc::fake::{Answer, Provider, tokens};
use crate::support::cluster::Cluster;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::text_of;

#[actix_web::test]
async fn a_sign_in_is_finished_at_another_instance_and_ended_at_a_third() {
    let cluster = Cluster::start(1).await;
    let provider = Provider::start().await;
    let issuer = provider.issuer.clone();
    let first = cluster.join(|config| config.oidc = Some(OidcConfig::new(issuer.clone(), "signalbox"))).await;
    let second = cluster.join(|config| config.oidc = Some(OidcConfig::new(issuer.clone(), "signalbox"))).await;
    first.register("root").await;
    let mut browser = Browser::new();

    let start = browser.open(&format!("http://{}/api/v1/auth/oidc/start", first.address)).await;
    let token = provider.key.sign(&provider.claims(&start.parameter("nonce")));
    provider.script.lock().token = Some(Answer::Json(tokens(&token)));
    let callback = format!("http://{}/api/v1/auth/oidc/callback", second.address);
    let page = browser.open(&format!("{callback}?code=any&state={}", start.parameter("state"))).await;
    assert_eq!(page.location.as_deref(), Some("/"), "{}", page.text);
    let (place, value) = browser.named("signalbox_refresh_")[0];
    let refresh = first.client.post("/auth/refresh").header("X-Refresh-Cookie", "1");
    let pair = refresh.header("Cookie", &format!("{}={value}", place.2)).expect(200).await;
    let access = text_of(&pair["access_token"]);
    let elsewhere = cluster.address(0);
    let mut dashboard = Dashboard::open(elsewhere, "/api/v1/ws/fleet", Pass::Header(&access), &[]).await.unwrap();
    dashboard.expect("fleet").await;

    let notice = provider.key.sign(&provider.logout_claims("once"));
    second.client.post("/auth/oidc/logout").form(&[("logout_token", &notice)]).expect(200).await;

    dashboard.expect_close(4401).await;
    for client in [&first.client, &second.client, &cluster.at(0).client] {
        crate::support::eventually("the session has ended", async || {
            (client.get("/auth/me").bearer(&access).send().await.status == 401).then_some(())
        })
        .await;
    }
    // Used at one instance, the message is used at all.
    first.client.post("/auth/oidc/logout").form(&[("logout_token", &notice)]).expect_error(400, "bad_request").await;
}
