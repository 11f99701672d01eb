//! `--password-login`, and accounts that have no password.

use serde_json::json;
use signalbox::config::PasswordLogin;

use super::browser::Browser;
use super::fake::Fake;
use crate::support::command_line::{run, signalbox};
use crate::support::{PASSWORD, registration, write_private};

async fn try_password(fake: &Fake, name: &str, password: &str) -> (u16, String) {
    let answer =
        fake.service.client.post("/auth/login").form(&[("username", name), ("password", password)]).send().await;
    (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
}

#[actix_web::test]
async fn an_account_of_the_provider_has_no_password_that_could_be_right() {
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    fake.sign_in(&mut browser, |_| {}).await;
    let token = fake.token(&browser).await;

    for password in ["", "any", PASSWORD] {
        let refused = try_password(&fake, "ada", password).await;
        assert_eq!(refused, (401, "invalid_credentials".to_owned()), "{password}");
    }
    let body = json!({ "current_password": "any", "new_password": "another long password" });
    let change = fake.service.client.post("/auth/change-password").bearer(&token).json(body);
    change.expect_error(400, "no_password").await;
}

#[actix_web::test]
async fn with_admins_only_administrators_use_their_password() {
    let storage = crate::support::Storage::fresh().await;
    let service = crate::support::TestService::start_on(storage, |_| {}).await;
    service.register("root").await;
    service.register("bob").await;
    let storage = service.stop().await;

    let service = crate::support::TestService::start_on(storage, |config| {
        config.oidc = Some(signalbox::config::OidcConfig::new("http://127.0.0.1:1", "signalbox"));
        config.password_login = PasswordLogin::Admins;
    })
    .await;

    let sign_in = |name: &'static str, password: &'static str| {
        service.client.post("/auth/login").form(&[("username", name), ("password", password)])
    };
    sign_in("root", PASSWORD).expect(200).await;
    sign_in("bob", PASSWORD).expect_error(403, "password_login_off").await;
    // Who does not know the password learns nothing about whose account it is.
    sign_in("bob", "wrong").expect_error(401, "invalid_credentials").await;
    sign_in("root", "wrong").expect_error(401, "invalid_credentials").await;
    sign_in("nobody", "wrong").expect_error(401, "invalid_credentials").await;
    service.client.post("/auth/register").json(registration("carol")).expect_error(403, "password_login_off").await;
    assert_eq!(service.client.get("/service").expect(200).await["password_login"], "admins");
}

#[actix_web::test]
async fn with_off_only_the_oldest_administrator_uses_their_password() {
    let storage = crate::support::Storage::fresh().await;
    let service = crate::support::TestService::start_on(storage, |_| {}).await;
    for name in ["root", "second", "bob"] {
        service.register(name).await;
    }
    let storage = service.stop().await;
    storage.execute(&["UPDATE users SET is_admin = TRUE WHERE username = 'second'"]).await;
    let off = |config: &mut signalbox::config::Config| {
        config.oidc = Some(signalbox::config::OidcConfig::new("http://127.0.0.1:1", "signalbox"));
        config.password_login = PasswordLogin::Off;
    };

    let service = crate::support::TestService::start_on(storage, off).await;
    let form = |name: &'static str| [("username", name), ("password", PASSWORD)];
    service.client.post("/auth/login").form(&form("root")).expect(200).await;
    for name in ["second", "bob"] {
        service.client.post("/auth/login").form(&form(name)).expect_error(403, "password_login_off").await;
    }

    let storage = service.stop().await;
    storage.execute(&["UPDATE users SET password_hash = '' WHERE username = 'root'"]).await;
    let service = crate::support::TestService::start_on(storage, off).await;
    service.client.post("/auth/login").form(&form("second")).expect(200).await;
}

#[actix_web::test]
async fn the_first_account_is_local_whatever_the_setting() {
    let fake = Fake::start_with(|config| config.password_login = PasswordLogin::Off).await;

    assert_eq!(try_password(&fake, "root", PASSWORD).await.0, 200);
}

#[actix_web::test]
async fn settings_that_do_not_fit_end_the_program() {
    let issuer = ["--oidc-issuer", "https://sso.example.com", "--oidc-client-id", "box"];
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["--oidc-issuer", "https://sso.example.com"], "--oidc-client-id"),
        (vec!["--oidc-client-id", "box"], "--oidc-issuer"),
        (vec!["--oidc-allow", "example.com"], "--oidc-issuer"),
        (vec!["--oidc-name", "Corp"], "--oidc-issuer"),
        (vec!["--oidc-issuer", "http://sso.example.com", "--oidc-client-id", "box"], "https://"),
        (vec!["--oidc-issuer", "sso.example.com", "--oidc-client-id", "box"], "https://"),
        ([&issuer[..], &["--oidc-allow", "ada@example.com"]].concat(), "e-mail domain"),
        ([&issuer[..], &["--oidc-groups-claim", " "]].concat(), "name"),
        ([&issuer[..], &["--oidc-client-secret-file", "/nonexistent"]].concat(), "--oidc-client-secret-file"),
        ([&issuer[..], &["--oidc-ca-file", "/nonexistent"]].concat(), "--oidc-ca-file"),
        ([&issuer[..], &["--listen", "0.0.0.0:0"]].concat(), "--public-url"),
        (vec!["--password-login", "off"], "--oidc-issuer"),
        (vec!["--password-login", "admins"], "--oidc-issuer"),
        (vec!["--password-login", "never"], "never"),
    ];

    for (flags, named) in cases {
        let directory = tempfile::tempdir().unwrap();
        let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        if flags.contains(&"--listen") {
            command = signalbox(&["serve", "--data-dir"]);
        }
        command.arg(directory.path()).args(&flags);
        run(command).await.assert_refused(named);
    }
}

#[actix_web::test]
async fn a_secret_that_others_can_read_or_that_is_empty_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");

    for (text, mode, named) in [("a secret", 0o644, "0644"), ("\n", 0o600, "empty")] {
        write_private(&file, text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(directory.path().join("data"));
        command.args([
            "--oidc-issuer",
            "https://sso.example.com",
            "--oidc-client-id",
            "box",
            "--oidc-client-secret-file",
        ]);
        command.arg(&file);
        run(command).await.assert_refused(named);
    }
}
