//! The refresh token as a cookie, for browsers: `X-Refresh-Cookie: 1`.

mod attacks;
mod refused;

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::json;

use crate::support::tokens::claims_of;
use crate::support::{Account, Answer, Call, PASSWORD, TestService, keys_of, registration, text_of, uuid_of};

/// The prefix of its name; a mark of the service follows.
const NAME: &str = "signalbox_refresh_";

/// Its attributes where it came over HTTPS.
const SECURE: [&str; 4] = ["HttpOnly", "SameSite=Strict", "Path=/", "Secure"];

/// And where it did not.
const PLAIN: [&str; 3] = ["HttpOnly", "SameSite=Strict", "Path=/api/v1/auth"];

/// A week, as long as a refresh token lives.
const LIFETIME_SECONDS: i64 = 7 * 24 * 3_600;

/// A cookie as an answer sets it.
#[derive(Debug)]
struct SetCookie {
    name: String,
    value: String,
    /// Without `Max-Age`.
    attributes: BTreeSet<String>,
    max_age: i64,
}

impl SetCookie {
    /// The one of an answer.
    #[track_caller]
    fn of(answer: &Answer) -> Self {
        let cookies: Vec<_> = answer.headers.get_all("Set-Cookie").iter().collect();
        assert_eq!(cookies.len(), 1, "{answer}: {:?}", answer.headers);
        let mut parts = cookies[0].to_str().unwrap().split("; ");
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("a cookie");
        let mark = name.trim_start_matches("__Host-").strip_prefix(NAME).expect("our cookie");
        assert!(mark.len() == 8 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        let (ages, attributes): (Vec<_>, _) = parts.partition(|part| part.starts_with("Max-Age="));
        let [age] = ages[..] else { panic!("not one Max-Age: {:?}", answer.headers) };
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
            attributes: attributes.into_iter().map(str::to_owned).collect(),
            max_age: age.trim_start_matches("Max-Age=").parse().unwrap(),
        }
    }

    #[track_caller]
    fn assert_attributes(&self, expected: &[&str]) {
        assert_eq!(self.attributes, expected.iter().map(|text| (*text).to_owned()).collect(), "{self:?}");
    }
}

#[track_caller]
fn assert_cleared(answer: &Answer) {
    let cookie = SetCookie::of(answer);
    assert_eq!((cookie.value.as_str(), cookie.max_age), ("", 0), "{cookie:?}");
    // A browser only replaces a cookie with the same path.
    cookie.assert_attributes(&PLAIN);
}

#[track_caller]
fn assert_untouched(answer: &Answer) {
    assert!(!answer.headers.contains_key("Set-Cookie"), "{answer}: {:?}", answer.headers);
}

impl Call {
    /// As the page of the service asks.
    fn in_cookie(self) -> Self {
        self.header("X-Refresh-Cookie", "1")
    }

    /// The cookie that a browser sends.
    fn cookie(self, name: &str, token: &str) -> Self {
        self.header("Cookie", &format!("{name}={token}"))
    }
}

/// The name of a service's cookie without HTTPS.
fn name_of(service: &TestService) -> String {
    format!("{NAME}{}", service.state.accounts.tokens.mark())
}

fn register(service: &TestService) -> Call {
    service.client.post("/auth/register").json(service.registration("alice")).in_cookie()
}

fn login(service: &TestService) -> Call {
    service.client.post("/auth/login").form(&[("username", "alice"), ("password", PASSWORD)]).in_cookie()
}

fn refresh(service: &TestService, token: &str) -> Call {
    service.client.post("/auth/refresh").cookie(&name_of(service), token).in_cookie()
}

/// Alice, signed in by a browser whose cookie is her refresh token.
async fn alice(service: &TestService) -> Account {
    let answer = register(service).expect_answer(201).await;
    let body = answer.json();
    Account {
        id: uuid_of(&body["user"]["id"]),
        username: "alice".to_owned(),
        email: "alice@example.com".to_owned(),
        token: text_of(&body["access_token"]),
        refresh_token: SetCookie::of(&answer).value,
    }
}

/// The next pair of tokens of a browser.
async fn refreshed(service: &TestService, account: &Account) -> Account {
    let answer = refresh(service, &account.refresh_token).expect_answer(200).await;
    let token = text_of(&answer.json()["access_token"]);
    Account { token, refresh_token: SetCookie::of(&answer).value, ..account.clone() }
}

async fn assert_alive(service: &TestService, account: &Account) {
    service.client.get("/auth/me").bearer(&account.token).expect(200).await;
    refreshed(service, account).await;
}

async fn assert_dead(service: &TestService, account: &Account) {
    service.client.get("/auth/me").bearer(&account.token).expect_refusal(401).await;
    refresh(service, &account.refresh_token).expect_refusal(401).await;
}

#[actix_web::test]
async fn the_token_is_in_the_cookie_and_nowhere_in_the_body() {
    let service = TestService::start().await;

    let registered = register(&service).expect_answer(201).await;
    let signed_in = login(&service).expect_answer(200).await;
    let refreshed = refresh(&service, &SetCookie::of(&signed_in).value).expect_answer(200).await;

    assert_eq!(keys_of(&registered.json()), ["access_token", "refresh_token", "token_type", "user"]);
    for answer in [&registered, &signed_in, &refreshed] {
        let (cookie, body) = (SetCookie::of(answer), answer.json());
        cookie.assert_attributes(&PLAIN);
        assert_eq!(cookie.name, name_of(&service));
        assert_eq!(claims_of(&cookie.value)["typ"], "refresh");
        assert_eq!(claims_of(&cookie.value)["sid"], claims_of(&text_of(&body["access_token"]))["sid"]);
        // Less the time that the answer took to be made.
        assert!((LIFETIME_SECONDS - 600..=LIFETIME_SECONDS).contains(&cookie.max_age), "{cookie:?}");
        assert_eq!((&body["refresh_token"], &body["token_type"]), (&json!(""), &json!("bearer")));
        assert!(!answer.text.contains(&cookie.value), "{answer}");
    }
}

#[actix_web::test]
async fn without_the_header_nothing_is_different() {
    let service = TestService::start().await;

    let registered = service.client.post("/auth/register").json(registration("alice")).expect_answer(201).await;
    let (name, token) = (&name_of(&service), text_of(&registered.json()["refresh_token"]));
    let form = [("username", "alice"), ("password", PASSWORD)];
    let signed_in = service.client.post("/auth/login").form(&form).cookie(name, &token).expect_answer(200).await;
    let body = json!({"refresh_token": token});
    let refreshed = service.client.post("/auth/refresh").json(body).cookie(name, &token).expect_answer(200).await;
    let bearer = text_of(&refreshed.json()["access_token"]);
    let signed_out = service.client.post("/auth/logout").bearer(&bearer).cookie(name, &token).expect_answer(200).await;

    for answer in [&registered, &signed_in, &refreshed] {
        assert_eq!(claims_of(&text_of(&answer.json()["refresh_token"]))["typ"], "refresh");
    }
    for answer in [&registered, &signed_in, &refreshed, &signed_out] {
        assert_untouched(answer);
    }
}

#[actix_web::test]
async fn the_cookie_is_secure_where_people_come_by_https() {
    let service = TestService::start().await;
    register(&service).expect(201).await;

    for (name, value, is_https) in [
        ("X-Forwarded-Proto", "https", true),
        ("X-Forwarded-Proto", "HTTPS, http", true),
        ("Forwarded", "for=192.0.2.60;proto=https;by=203.0.113.43", true),
        ("X-Forwarded-Proto", "http", false),
        ("Forwarded", "for=192.0.2.60;proto=http", false),
    ] {
        let answer = login(&service).header(name, value).expect_answer(200).await;
        assert_secure(&answer, is_https);
    }
    for (url, is_https) in
        [("https://box.example.com", true), ("HTTPS://box.example.com/", true), ("http://box", false)]
    {
        let service = TestService::start_with(|config| config.public_url = Some(url.to_owned())).await;
        let answer = register(&service).expect_answer(201).await;
        assert_secure(&answer, is_https);
    }
}

#[track_caller]
fn assert_secure(answer: &Answer, is_secure: bool) {
    let cookie = SetCookie::of(answer);
    cookie.assert_attributes(if is_secure { &SECURE } else { &PLAIN });
    assert_eq!(cookie.name.starts_with("__Host-"), is_secure, "{cookie:?}");
}

#[actix_web::test]
async fn the_pages_origin_says_best_whether_it_came_by_https() {
    let start =
        |url: Option<&'static str>| TestService::start_with(move |config| config.public_url = url.map(str::to_owned));
    let (plain, public) = (start(None).await, start(Some("https://box.example.com")).await);

    // A proxy that passes on the host but not the scheme.
    let call = register(&plain).header("X-Forwarded-Host", "box.example.com");
    assert_secure(&call.header("Origin", "https://box.example.com").expect_answer(201).await, true);
    // A page that was opened without the proxy: its browser would not store a secure cookie.
    let origin = format!("http://{}", public.address);
    assert_secure(&register(&public).header("Origin", &origin).expect_answer(201).await, false);
    let call = login(&public).header("X-Forwarded-Proto", "https");
    assert_secure(&call.header("Origin", &origin).expect_answer(200).await, false);
}

#[actix_web::test]
async fn by_https_only_the_cookie_of_this_host_counts() {
    let service = TestService::start_with(|config| config.public_url = Some("https://box.example.com".into())).await;
    let cookie = SetCookie::of(&register(&service).expect_answer(201).await);
    let refresh = |name: &str| service.client.post("/auth/refresh").in_cookie().cookie(name, &cookie.value);

    refresh(&name_of(&service)).expect_error(401, "token_invalid").await;
    let plain = refresh(&cookie.name).header("Origin", &format!("http://{}", service.address));
    plain.expect_error(401, "token_invalid").await;
    let answer = refresh(&cookie.name).header("Origin", "https://box.example.com").expect_answer(200).await;

    assert_secure(&answer, true);
    let call = service.client.post("/auth/logout").bearer(&text_of(&answer.json()["access_token"])).in_cookie();
    let cleared = call.cookie(&cookie.name, &SetCookie::of(&answer).value).expect_answer(200).await;
    assert_secure(&cleared, true);
    assert_eq!(SetCookie::of(&cleared).max_age, 0);
}

#[actix_web::test]
async fn services_on_one_host_do_not_take_each_others_cookies() {
    let (one, other) = (TestService::start().await, TestService::start().await);
    let account = alice(&one).await;
    assert_ne!(name_of(&one), name_of(&other));

    let theirs = other.client.post("/auth/refresh").cookie(&name_of(&one), &account.refresh_token).in_cookie();
    assert_untouched(&theirs.expect_answer(401).await);

    assert_alive(&one, &account).await;
}

#[actix_web::test]
async fn of_several_cookies_the_one_that_is_good_counts() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    let name = name_of(&service);
    let refresh = |cookies: String| service.client.post("/auth/refresh").in_cookie().header("Cookie", &cookies);

    refresh(format!("{name}=evil; {name}={}", account.token)).expect_error(401, "token_invalid").await;
    let cookies = format!("{name}=evil; {name}={}; {name}={}; {name}=", account.token, account.refresh_token);
    let answer = refresh(cookies).expect_answer(200).await;

    let account = Account { refresh_token: SetCookie::of(&answer).value, ..account };
    assert_alive(&service, &account).await;
}

#[actix_web::test]
async fn a_refresh_takes_the_cookie_and_sets_the_next() {
    let service = TestService::start().await;
    let first = alice(&service).await;

    let second = refreshed(&service, &first).await;
    let third = refresh(&service, &second.refresh_token).json(json!({})).expect_answer(200).await;

    assert_ne!(first.refresh_token, second.refresh_token);
    assert_ne!(SetCookie::of(&third).value, second.refresh_token);
    service.client.get("/auth/me").bearer(&text_of(&third.json()["access_token"])).expect(200).await;
    assert_alive(&service, &Account { refresh_token: SetCookie::of(&third).value, ..second }).await;
}

#[actix_web::test]
async fn the_cookie_is_found_among_others() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    let name = name_of(&service);
    let others = format!("theme=dark; broken; =; x=\"a; {name}={}; {name}_2=no", account.refresh_token);

    let call = service.client.post("/auth/refresh").in_cookie().header("Cookie", "a=b").header("Cookie", &others);

    call.expect(200).await;
}

#[actix_web::test]
async fn tabs_that_refresh_at_once_get_the_same_cookie() {
    let service = TestService::start().await;
    let account = alice(&service).await;

    let tabs = join_all((0..8).map(|_| refreshed(&service, &account))).await;

    let cookies: BTreeSet<&String> = tabs.iter().map(|tab| &tab.refresh_token).collect();
    assert_eq!(cookies.len(), 1);
    for tab in &tabs {
        service.client.get("/auth/me").bearer(&tab.token).expect(200).await;
    }
    assert_alive(&service, &tabs[0]).await;
}

#[actix_web::test]
async fn a_token_in_the_body_moves_into_the_cookie() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let body = json!({"refresh_token": account.refresh_token});
    let answer = service.client.post("/auth/refresh").in_cookie().json(body).expect_answer(200).await;

    assert_eq!(answer.json()["refresh_token"], "");
    let token = text_of(&answer.json()["access_token"]);
    assert_alive(&service, &Account { token, refresh_token: SetCookie::of(&answer).value, ..account }).await;
}

#[actix_web::test]
async fn logout_clears_the_cookie() {
    let service = TestService::start().await;
    let account = alice(&service).await;

    let call = service.client.post("/auth/logout").bearer(&account.token);
    let call = call.cookie(&name_of(&service), &account.refresh_token);
    let answer = call.in_cookie().expect_answer(200).await;

    assert_cleared(&answer);
    assert_dead(&service, &account).await;
}

#[actix_web::test]
async fn logout_ends_the_session_of_the_cookie_too_if_it_is_ones_own() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    let other_session = service.sign_in(&account).await;
    let bob = service.register("bob").await;
    let name = name_of(&service);
    let logout =
        |token: &str, cookie: &str| service.client.post("/auth/logout").bearer(token).cookie(&name, cookie).in_cookie();

    // Alice has signed in where Bob was: she keeps her cookie.
    assert_untouched(&logout(&bob.token, &account.refresh_token).expect_answer(200).await);
    assert_alive(&service, &other_session).await;
    let account = refreshed(&service, &account).await;
    assert_cleared(&logout(&account.token, &other_session.refresh_token).expect_answer(200).await);

    assert_dead(&service, &bob).await;
    assert_dead(&service, &account).await;
    assert_dead(&service, &other_session).await;
}

#[actix_web::test]
async fn a_new_password_leaves_the_cookie_of_its_own_session() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    let body = json!({"current_password": PASSWORD, "new_password": "another battery"});

    let call = service.client.post("/auth/change-password").bearer(&account.token).json(body).in_cookie();
    let answer = call.expect_answer(200).await;

    assert_untouched(&answer);
    assert_alive(&service, &account).await;
}
