//! The commands about accounts, beside a running service.

use tempfile::TempDir;

use crate::cli::beside;
use crate::support::command_line::{Launched, run, signalbox};
use crate::support::{PASSWORD, registration};

#[actix_web::test]
async fn accounts_are_managed_beside_a_running_service_which_applies_it() {
    let data = TempDir::new().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--registration", "closed", "--password-iterations", "10000"];
    let mut service = Launched::start(beside(data.path(), &serve));
    let address = service.address().await;
    let client = service.client().await;
    client.post("/auth/register").json(registration("alice")).expect(201).await;

    let invite = ["user", "invite", "--email", "bob@example.com", "--public-url", "https://box.example.com"];
    let url = run(beside(data.path(), &invite)).await.printed().trim().to_owned();
    let token = url.strip_prefix("https://box.example.com/register#invitation=").unwrap();
    let mut bob = registration("bob");
    bob["invitation"] = token.into();
    let bob = client.post("/auth/register").json(bob).expect(201).await;
    let token = bob["access_token"].as_str().unwrap();
    let pass = crate::support::dashboard::Pass::Header(token);
    let mut socket = crate::support::dashboard::Dashboard::open(address, "/api/v1/ws/fleet", pass, &[]).await.unwrap();
    let listed = run(beside(data.path(), &["user", "list"])).await;
    let lines: Vec<&str> = listed.printed().lines().collect();
    assert_eq!(lines.len(), 3, "{listed:?}");
    assert!(lines[1].starts_with("bob ") && lines[1].contains(" enabled "), "{listed:?}");
    assert!(lines[2].starts_with("alice ") && lines[2].contains(" administrator "), "{listed:?}");

    let said = run(beside(data.path(), &["user", "disable", "bob@example.com"])).await;
    assert_eq!(said.printed(), "bob is disabled\n");
    // Long before the next ping looks for the session.
    socket.expect_close(4401).await;
    let login = || client.post("/auth/login").form(&[("username", "bob"), ("password", PASSWORD)]);
    login().expect_error(401, "invalid_credentials").await;
    assert_eq!(run(beside(data.path(), &["user", "enable", "bob"])).await.printed(), "bob is enabled\n");
    login().expect(200).await;
    assert_eq!(run(beside(data.path(), &["user", "admin", "bob"])).await.printed(), "bob is an administrator\n");
    let revoked = run(beside(data.path(), &["user", "admin", "alice", "--revoke"])).await;
    assert_eq!(revoked.printed(), "alice is no administrator\n");

    for arguments in [["user", "disable", "bob"], ["user", "disable", "nobody"]] {
        let refused = run(beside(data.path(), &arguments)).await;
        assert!(refused.code.is_some_and(|code| code != 0) && refused.stdout.is_empty(), "{refused:?}");
    }
    run(signalbox(&["user", "invite", "--email", "nobody"])).await.assert_refused("e-mail");
    run(signalbox(&["user", "invite", "--expires-in-hours", "721"])).await.assert_refused("720");
}
