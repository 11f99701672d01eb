//! Neighbours that read a lot.

use signalbox::shares::Share;

use crate::support::agent::sample_aged;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;
use crate::support::{Account, eventually};

#[actix_web::test]
async fn expensive_reads_of_one_account_leave_room_for_others() {
    let site = Site::start().await;
    let neighbour = site.service.register("neighbour").await;
    let reads = site.service.state.limits.shares.reads.clone();
    let mut held = Vec::new();
    while let Ok(permit) = reads.try_enter(Share::Account(site.owner.id)) {
        held.push(permit);
    }

    site.service.client.get("/audit").bearer(&neighbour.token).expect(200).await;

    let own = tokio::spawn(site.service.client.get("/audit").bearer(&site.owner.token).send());
    eventually("their own read waits", || async { (reads.waiting() == 1).then_some(()) }).await;
    held.pop();
    assert_eq!(own.await.unwrap().status, 200);
}

/// All that read the history wait at the same gate.
#[actix_web::test]
async fn reads_of_the_history_wait_for_those_of_their_own_account() {
    let site = Site::start().await;
    site.agent().await.store(1, vec![sample_aged(1)]).await;
    let shares = site.service.state.limits.shares.clone();
    let gates = [(&shares.reads, "series?names=cpu_percent"), (&shares.listings, "names")];
    for (gate, read) in gates {
        let mut held = Vec::new();
        while let Ok(permit) = gate.try_enter(Share::Account(site.owner.id)) {
            held.push(permit);
        }

        let path = format!("/metrics/{}/{read}", site.server_id);
        let own = tokio::spawn(site.service.client.get(path).bearer(&site.owner.token).send());

        eventually("their own read waits", || async { (gate.waiting() == 1).then_some(()) }).await;
        assert!(gate.try_enter(Share::Account(uuid::Uuid::max())).is_ok(), "{read}: nothing is left for others");
        held.pop();
        assert_eq!(own.await.unwrap().status, 200, "{read}");
    }
}

#[actix_web::test]
async fn searches_of_logs_of_one_account_leave_room_for_others() {
    let site = Site::start().await;
    let searches = site.service.state.limits.shares.searches.clone();
    for path in [format!("/logs/{}", site.server_id), format!("/docker/{}/containers/web/logs", site.server_id)] {
        let mut held = Vec::new();
        while let Ok(permit) = searches.try_enter(Share::Account(site.owner.id)) {
            held.push(permit);
        }

        let own = tokio::spawn(site.service.client.get(&path).bearer(&site.owner.token).send());

        eventually("their own search waits", || async { (searches.waiting() == 1).then_some(()) }).await;
        assert!(searches.try_enter(Share::Account(uuid::Uuid::max())).is_ok());
        held.pop();
        // There is no agent that could search.
        assert_eq!(own.await.unwrap().status, 400, "{path}");
    }
}

#[actix_web::test]
async fn sockets_of_one_account_leave_room_for_others() {
    let site = Site::start_with(|config| config.shares.dashboards.places = 4).await;
    let neighbour = site.service.register("neighbour").await;
    let open = async |account: &Account| {
        Dashboard::open(site.service.address, "/api/v1/ws/alerts", Pass::Header(&account.token), &[]).await
    };

    let (first, second) = (open(&site.owner).await, open(&site.owner).await);
    let third = open(&site.owner).await;

    assert!(first.is_ok() && second.is_ok());
    assert_eq!(third.err(), Some(503));
    assert!(open(&neighbour).await.is_ok());
}

#[actix_web::test]
async fn lists_of_all_servers_of_one_account_leave_room_for_others_and_for_its_other_sockets() {
    let site = Site::start_with(|config| config.shares.fleet_views.places = 4).await;
    let neighbour = site.service.register("neighbour").await;
    let open = async |path: &str, account: &Account| {
        Dashboard::open(site.service.address, path, Pass::Header(&account.token), &[]).await
    };

    let (first, second) = (open("/ws/fleet", &site.owner).await, open("/ws/fleet", &site.owner).await);
    let third = open("/ws/fleet", &site.owner).await;

    assert!(first.is_ok() && second.is_ok());
    assert_eq!(third.err(), Some(503));
    assert!(open("/ws/alerts", &site.owner).await.is_ok());
    assert!(open("/ws/fleet", &neighbour).await.is_ok());
}
