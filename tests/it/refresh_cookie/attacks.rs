//! Pages of other sites, and readers of the log.

use reqwest::Method;
use tempfile::TempDir;

use super::{Call, SetCookie, alice, assert_alive, assert_untouched, login, refresh, register};
use crate::support::command_line::{Launched, signalbox};
use crate::support::{PASSWORD, TestService, behind_a_proxy, registration, text_of};

#[actix_web::test]
async fn another_sites_page_is_refused() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    let ip = service.address.ip();
    let near_misses =
        ["https://evil.example", "null", "", &format!("http://{ip}.evil.example"), &format!("http://{ip}:1")];

    for origin in near_misses {
        let bob = service.client.post("/auth/register").json(registration("bob")).in_cookie();
        let logout = service.client.post("/auth/logout").bearer(&account.token).in_cookie();
        for call in [bob, login(&service), refresh(&service, &account.refresh_token), logout] {
            let answer = call.header("Origin", origin).expect_answer(403).await;
            assert_eq!(answer.json()["code"], "origin_not_allowed", "{origin}");
            assert_untouched(&answer);
        }
    }

    // Nothing was signed out, spent or created by that.
    assert_alive(&service, &account).await;
    service.register("bob").await;
}

#[actix_web::test]
async fn the_services_own_page_and_those_that_are_allowed_may() {
    let service = TestService::start_with(|config| {
        config.public_url = Some("https://box.example.com/".to_owned());
        config.allowed_origins = vec!["https://ops.example".to_owned()];
    })
    .await;
    register(&service).expect(201).await;

    for origin in [&format!("http://{}", service.address), "https://box.example.com", "https://ops.example"] {
        let answer = login(&service).header("Origin", origin).expect_answer(200).await;
        // Over HTTPS it has another name.
        let SetCookie { name, value, .. } = SetCookie::of(&answer);
        let refresh = service.client.post("/auth/refresh").cookie(&name, &value).in_cookie();
        refresh.header("Origin", origin).expect(200).await;
    }
}

#[actix_web::test]
async fn behind_a_proxy_the_host_that_it_was_asked_for_counts() {
    let service = TestService::start_with(behind_a_proxy).await;
    register(&service).expect(201).await;
    let page = |origin: &str| login(&service).header("Host", "upstream").header("Origin", origin);

    page("https://box.example").expect_error(403, "origin_not_allowed").await;
    for (name, value) in [("X-Forwarded-Host", "box.example"), ("Forwarded", "for=192.0.2.60;host=box.example")] {
        page("https://box.example").header(name, value).expect(200).await;
        for other in ["https://evil.example", "https://box.example:8443", "null"] {
            page(other).header(name, value).expect_error(403, "origin_not_allowed").await;
        }
    }
    page("https://box.example:8443").header("X-Forwarded-Host", "box.example:8443").expect(200).await;
}

#[actix_web::test]
async fn without_the_header_an_origin_is_not_looked_at() {
    let service = TestService::start().await;
    service.register("alice").await;

    let form = [("username", "alice"), ("password", PASSWORD)];
    let call = service.client.post("/auth/login").form(&form).header("Origin", "https://evil.example");

    assert_untouched(&call.expect_answer(200).await);
}

#[actix_web::test]
async fn no_preflight_is_granted() {
    let service =
        TestService::start_with(|config| config.allowed_origins = vec!["https://ops.example".to_owned()]).await;

    for (path, origin) in ["/auth/register", "/auth/login", "/auth/refresh", "/auth/logout"]
        .into_iter()
        .flat_map(|path| ["https://evil.example", "https://ops.example"].map(|origin| (path, origin)))
    {
        let preflight: Call = service.client.call(Method::OPTIONS, path).header("Origin", origin);
        let preflight = preflight.header("Access-Control-Request-Method", "POST");
        let answer = preflight.header("Access-Control-Request-Headers", "x-refresh-cookie").send().await;

        assert_eq!(answer.status, 405, "{answer}");
        let grants = answer.headers.keys().filter(|name| name.as_str().starts_with("access-control-"));
        assert_eq!(grants.count(), 0, "{:?}", answer.headers);
    }
}

#[actix_web::test]
async fn no_token_reaches_the_log() {
    let data = TempDir::new().unwrap();
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--log", "trace", "--data-dir"]);
    command.arg(data.path());
    let mut service = Launched::start(command);
    let client = service.client().await;
    let mut tokens = Vec::new();

    let registered = client.post("/auth/register").json(registration("alice")).in_cookie().expect_answer(201).await;
    let SetCookie { name, value, .. } = SetCookie::of(&registered);
    tokens.push(value);
    let refresh = |token: &str| client.post("/auth/refresh").cookie(&name, token).in_cookie();
    let form = [("username", "alice"), ("password", PASSWORD)];
    let signed_in = client.post("/auth/login").form(&form).in_cookie().expect_answer(200).await;
    tokens.push(SetCookie::of(&signed_in).value);
    for refused in ["no.such.token-1", &format!("{}x", tokens[0])] {
        refresh(refused).expect_refusal(401).await;
        tokens.push(refused.to_owned());
    }
    client.post("/auth/refresh").cookie(&name, &tokens[0]).expect(422).await;
    for origin in ["https://evil.example", "https://worse.example"] {
        refresh(&tokens[0]).header("Origin", origin).expect_refusal(403).await;
    }
    let refreshed = refresh(&tokens[0]).expect_answer(200).await;
    tokens.push(SetCookie::of(&refreshed).value);
    let access = text_of(&refreshed.json()["access_token"]);
    client.post("/auth/logout").bearer(&access).cookie(&name, &tokens[4]).in_cookie().expect(200).await;
    refresh(&tokens[4]).expect_refusal(401).await;

    service.signal("TERM");
    let outcome = service.outcome().await;

    assert!(outcome.stderr.contains("/auth/refresh"), "{}", outcome.stderr);
    // The log mentions once what a proxy may have to be configured for.
    let told: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("--public-url must be set")).collect();
    assert_eq!(told.len(), 1, "{}", outcome.stderr);
    assert!(told[0].contains("https://evil.example"), "{}", told[0]);
    for secret in tokens.iter().chain([&access]) {
        assert!(!outcome.stderr.contains(secret.as_str()), "{secret} is in the log");
    }
}
