//! One address that signs in all the time, and people elsewhere.

use std::net::Ipv4Addr;

use signalbox::config::OidcConfig;
use tokio::task::JoinHandle;

use super::browser::Browser;
use super::fake::{Answer, Begun, Fake};
use crate::support::{PATIENCE, eventually};

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);

/// Sign-ins that the service remembers, or asks the provider about at the same time.
const FEW: usize = 4;

#[actix_web::test]
async fn made_up_codes_of_one_address_keep_nobody_from_signing_in() {
    let fake = Fake::start_with(|config| config.shares.finished_sign_ins = FEW).await;
    fake.script(|script| script.token = Some(Answer::Status(400)));
    let mut stranger = Browser::at(STRANGER);

    for _ in 0..3 * FEW {
        let begun = fake.begin(&mut stranger).await;
        let page = fake.call_back(&mut stranger, &[("code", "made up"), ("state", &begun.state)]).await;
        assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=failed"));
    }

    let page = fake.sign_in(&mut Browser::new(), |_| {}).await;
    assert_eq!(page.location.as_deref(), Some("/"));
}

#[actix_web::test]
async fn sign_ins_of_one_address_that_wait_for_the_provider_hold_up_nobody_else() {
    let fake = Fake::start_with(|config| {
        config.shares.sign_ins.places = FEW;
        // Nobody gives up before the end of the test.
        config.oidc = config.oidc.take().map(|oidc| OidcConfig { answer_within: PATIENCE * 2, ..oidc });
    })
    .await;
    let mut begun = Vec::new();
    for _ in 0..2 * FEW {
        let mut stranger = Browser::at(STRANGER);
        let Begun { state, .. } = fake.begin(&mut stranger).await;
        begun.push((stranger, format!("{}/api/v1/auth/oidc/callback?code=any&state={state}", fake.base)));
    }
    fake.script(|script| script.token = Some(Answer::Silence));
    let waiting: Vec<_> =
        begun.into_iter().map(|(mut stranger, url)| tokio::spawn(async move { stranger.open(&url).await })).collect();
    let sign_ins = fake.service.state.limits.shares.sign_ins.clone();
    let has_all = || (sign_ins.inside() + sign_ins.waiting() == 2 * FEW).then_some(());
    // Before the provider answers others again, those inside must have asked it.
    let have_asked = || fake.script.lock().token_requests.len() == FEW / 2;
    eventually("all of theirs are on their way", async || has_all().filter(|()| have_asked())).await;
    assert_eq!(sign_ins.inside(), FEW / 2, "they take the places of others");

    let page = fake.sign_in(&mut Browser::new(), |_| {}).await;

    assert_eq!(page.location.as_deref(), Some("/"));
    assert_eq!(has_all(), Some(()), "theirs wait still");
    waiting.iter().for_each(JoinHandle::abort);
}
