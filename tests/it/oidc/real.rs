//! A service and the provider of `web/tests/support/provider.mjs`, which know each other.

use std::process::Command;

use serde_json::{Value, json};
use signalbox::config::{Config, OidcConfig};

use super::browser::{Browser, Page};
use crate::support::command_line::Launched;
use crate::support::port::Port;
use crate::support::{Account, PATIENCE, Storage, TestService, text_of, write_private};

pub const CLIENT_SECRET: &str = "the secret of the client";

pub struct Real {
    pub service: TestService,
    /// The administrator, whose account is local.
    pub root: Account,
    pub base: String,
    pub issuer: String,
    _provider: Launched,
    _port: Port,
}

impl Real {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::start_on(Storage::fresh().await, adjust).await
    }

    pub async fn start_on(storage: Storage, adjust: impl FnOnce(&mut Config)) -> Self {
        let port = Port::reserve();
        let base = format!("http://{}", port.address);
        let (issuer, provider) = provider(&base).await;
        let secret_file = provider.directory().join("secret");
        write_private(&secret_file, CLIENT_SECRET);
        let service = TestService::start_on(storage, |config| {
            config.listen = port.address;
            config.oidc = Some(OidcConfig {
                client_secret_file: Some(secret_file),
                // No test reaches this limit, however long the machine pauses.
                answer_within: PATIENCE,
                ..OidcConfig::new(issuer.clone(), "signalbox")
            });
            adjust(config);
        })
        .await;
        let root = service.register("root").await;
        Self { service, root, base, issuer, _provider: provider, _port: port }
    }

    /// Signs in as somebody, up to the redirect that the callback answers with.
    pub async fn sign_in(&self, browser: &mut Browser, name: &str) -> Page {
        self.sign_in_from(browser, name, &format!("{}/api/v1/auth/oidc/start", self.base), &[]).await
    }

    pub async fn sign_in_from(&self, browser: &mut Browser, name: &str, start: &str, headers: &[(&str, &str)]) -> Page {
        let back = self.until_callback(browser, name, start, headers).await;
        browser.open(back.target().as_str()).await
    }

    /// The same, up to the redirect that leads to the callback.
    pub async fn until_callback(
        &self,
        browser: &mut Browser,
        name: &str,
        start: &str,
        headers: &[(&str, &str)],
    ) -> Page {
        let callback = format!("{}/api/v1/auth/oidc/callback", self.base);
        let page = browser.open_with(start, headers).await;
        assert_eq!(page.status, 302, "{}", page.text);
        let page = browser.follow_until(page, &callback).await;
        if page.location.is_some() {
            // The provider knows who it is.
            return page;
        }
        let action = page.after("action=\"").to_owned();
        let form = [("prompt", "login"), ("login", name), ("password", "any")];
        let page = browser.submit(page.url.join(&action).unwrap().as_str(), &form).await;
        browser.follow_until(page, &callback).await
    }

    /// An access token of the browser, as the interface gets one.
    pub async fn token(&self, browser: &mut Browser) -> String {
        let (place, value) = browser.named("signalbox_refresh_")[0];
        let cookie = format!("{}={value}", place.2);
        let refresh = self.service.client.post("/auth/refresh").header("X-Refresh-Cookie", "1");
        let answer = refresh.header("Cookie", &cookie).expect_answer(200).await;
        let set = answer.headers.get("Set-Cookie").unwrap().to_str().unwrap();
        let (_, fresh) = set.split(';').next().and_then(|pair| pair.split_once('=')).unwrap();
        let place = place.clone();
        browser.jar.insert(place, fresh.to_owned());
        text_of(&answer.json()["access_token"])
    }

    /// The profile of the person who is signed in there.
    pub async fn me(&self, browser: &mut Browser) -> Value {
        let token = self.token(browser).await;
        self.service.client.get("/auth/me").bearer(&token).expect(200).await
    }

    /// Signs out at the provider, which then tells the service.
    pub async fn sign_out_at_provider(&self, browser: &mut Browser) {
        let page = browser.open(&format!("{}/session/end", self.issuer)).await;
        let (action, xsrf) = (page.after("action=\"").to_owned(), page.after("name=\"xsrf\" value=\"").to_owned());
        let page = browser.submit(&action, &[("xsrf", &xsrf), ("logout", "yes")]).await;
        assert!(page.status < 400, "{}", page.text);
    }
}

/// Starts the provider for a service at `base`. Returns its address.
pub async fn provider(base: &str) -> (String, Launched) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/web/tests/support/provider.mjs");
    let settings = json!({
        "redirect": format!("{base}/api/v1/auth/oidc/callback"), "logout": format!("{base}/api/v1/auth/oidc/logout"),
    });
    let mut command = Command::new("node");
    command.args([script, &settings.to_string()]);
    let mut provider = Launched::start(command);
    let address = provider.address().await;
    (format!("http://{address}"), provider)
}
