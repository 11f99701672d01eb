//! A provider that the test controls, for what a real one cannot be made to do: wrong tokens, other keys, silence.

use std::sync::Arc;

use actix_web::rt::System;
use actix_web::{App, HttpResponse, HttpServer, web};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use signalbox::config::{Config, OidcConfig};
use signalbox_protocol::Timestamp;
use tokio::sync::oneshot;

use super::browser::{Browser, Page};
use crate::support::{Account, PATIENCE, TestService, text_of};

/// A key of the provider.
#[derive(Clone)]
pub struct Key {
    pub id: String,
    pkcs8: Vec<u8>,
    pub public: Vec<u8>,
}

impl Key {
    pub fn new(id: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let (pkcs8, public) = (pair.to_pkcs8v1().unwrap().as_ref().to_vec(), pair.public_key().as_ref().to_vec());
        Self { id: id.to_owned(), pkcs8, public }
    }

    fn jwk(&self) -> Value {
        // An uncompressed point: 4, x, y.
        let [x, y] = [&self.public[1..33], &self.public[33..]].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y })
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(None, claims)
    }

    pub fn sign_as(&self, typ: Option<&str>, claims: &Value) -> String {
        let header =
            Header { kid: Some(self.id.clone()), typ: typ.map(str::to_owned), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_ec_der(&self.pkcs8)).unwrap()
    }
}

/// How the provider answers at one address.
#[derive(Clone)]
pub enum Answer {
    Json(Value),
    Status(u16),
    /// Nothing, for longer than anybody waits.
    Silence,
    /// More than anybody needs.
    Endless,
}

#[derive(Default)]
pub struct Script {
    /// Instead of the usual document.
    pub document: Option<Answer>,
    /// Instead of the published keys.
    pub keys: Option<Answer>,
    pub token: Option<Answer>,
    pub userinfo: Option<Answer>,
    pub published: Vec<Key>,
    /// Members of the document that are others than usual.
    pub other: Vec<(&'static str, Value)>,
    pub document_reads: usize,
    pub key_reads: usize,
    pub token_requests: Vec<String>,
}

/// The provider alone.
pub struct Provider {
    pub issuer: String,
    pub key: Key,
    pub script: Arc<Mutex<Script>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Provider {
    pub async fn start() -> Self {
        let key = Key::new("first");
        let script = Arc::new(Mutex::new(Script { published: vec![key.clone()], ..Script::default() }));
        let (stop, until_stop) = oneshot::channel();
        let issuer = serve(script.clone(), until_stop).await;
        Self { issuer, key, script, stop: Some(stop) }
    }

    /// The claims of a good token for a sign-in with this nonce.
    pub fn claims(&self, nonce: &str) -> Value {
        let now = Timestamp::now().as_seconds();
        json!({
            "iss": self.issuer, "sub": "42", "aud": "signalbox", "exp": now + 300, "iat": now, "nonce": nonce,
            "email": "ada@example.com", "email_verified": true, "preferred_username": "ada", "groups": ["ops"],
            "sid": "session-1",
        })
    }

    /// The claims of a good logout token for the session of [`Self::claims`].
    pub fn logout_claims(&self, jti: &str) -> Value {
        let now = Timestamp::now().as_seconds();
        json!({
            "iss": self.issuer, "aud": "signalbox", "iat": now, "exp": now + 120, "jti": jti, "sub": "42",
            "sid": "session-1", "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
        })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        _ = self.stop.take().map(|stop| stop.send(()));
    }
}

/// A provider and a service that knows it.
pub struct Fake {
    pub service: TestService,
    /// The administrator, whose account is local.
    pub root: Account,
    pub issuer: String,
    pub base: String,
    pub key: Key,
    pub script: Arc<Mutex<Script>>,
    pub provider: Provider,
}

/// A sign-in that has begun.
pub struct Begun {
    pub page: Page,
    pub state: String,
    pub nonce: String,
}

impl Fake {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        let provider = Provider::start().await;
        let issuer = provider.issuer.clone();
        let service = TestService::start_with(|config| {
            // Only a test of this limit may reach it, however long the machine pauses.
            let oidc = OidcConfig { answer_within: PATIENCE, ..OidcConfig::new(issuer.clone(), "signalbox") };
            config.oidc = Some(oidc);
            adjust(config);
        })
        .await;
        let root = service.register("root").await;
        let base = format!("http://{}", service.address);
        let (key, script) = (provider.key.clone(), provider.script.clone());
        Self { service, root, issuer, base, key, script, provider }
    }

    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock());
    }

    pub async fn begin(&self, browser: &mut Browser) -> Begun {
        self.begin_with(browser, "").await
    }

    pub async fn begin_with(&self, browser: &mut Browser, query: &str) -> Begun {
        let page = browser.open(&format!("{}/api/v1/auth/oidc/start{query}", self.base)).await;
        let (state, nonce) = (page.parameter("state"), page.parameter("nonce"));
        Begun { page, state, nonce }
    }

    /// The claims of a good token.
    pub fn claims(&self, begun: &Begun) -> Value {
        self.provider.claims(&begun.nonce)
    }

    /// Comes back with a code that the provider redeems with this token.
    pub async fn come_back(&self, browser: &mut Browser, begun: &Begun, id_token: &str) -> Page {
        self.script(|script| script.token = Some(Answer::Json(tokens(id_token))));
        self.call_back(browser, &[("code", "any"), ("state", &begun.state)]).await
    }

    pub async fn call_back(&self, browser: &mut Browser, parameters: &[(&str, &str)]) -> Page {
        let query = serde_urlencoded::to_string(parameters).unwrap();
        browser.open(&format!("{}/api/v1/auth/oidc/callback?{query}", self.base)).await
    }

    /// An access token of the person who is signed in there, as the interface gets one; the browser keeps the old cookie.
    pub async fn token(&self, browser: &Browser) -> String {
        let (place, value) = browser.named("signalbox_refresh_")[0];
        let refresh = self.service.client.post("/auth/refresh").header("X-Refresh-Cookie", "1");
        let pair = refresh.header("Cookie", &format!("{}={value}", place.2)).expect(200).await;
        text_of(&pair["access_token"])
    }

    /// The profile of the person who is signed in there.
    pub async fn me(&self, browser: &Browser) -> Value {
        let token = self.token(browser).await;
        self.service.client.get("/auth/me").bearer(&token).expect(200).await
    }

    /// Signs in with good claims, after a change.
    pub async fn sign_in(&self, browser: &mut Browser, change: impl FnOnce(&mut Value)) -> Page {
        let begun = self.begin(browser).await;
        let mut claims = self.claims(&begun);
        change(&mut claims);
        let token = self.key.sign(&claims);
        self.come_back(browser, &begun, &token).await
    }
}

pub fn tokens(id_token: &str) -> Value {
    json!({ "access_token": "an access token", "token_type": "Bearer", "expires_in": 60, "id_token": id_token })
}

type Shared = web::Data<Arc<Mutex<Script>>>;

async fn serve(script: Arc<Mutex<Script>>, until_stop: oneshot::Receiver<()>) -> String {
    let (told, address) = oneshot::channel();
    std::thread::spawn(move || {
        System::new().block_on(async move {
            let server = HttpServer::new(move || {
                App::new()
                    .app_data(web::Data::new(script.clone()))
                    .route("/.well-known/openid-configuration", web::get().to(document))
                    .route("/keys", web::get().to(keys))
                    .route("/token", web::post().to(token))
                    .route("/userinfo", web::get().to(userinfo))
            });
            let server = server.workers(1).shutdown_timeout(0).disable_signals().bind("127.0.0.1:0").unwrap();
            _ = told.send(format!("http://{}", server.addrs()[0]));
            tokio::select! {
                ended = server.run() => ended.unwrap(),
                _ = until_stop => {}
            }
        });
    });
    address.await.unwrap()
}

async fn document(script: Shared, request: actix_web::HttpRequest) -> HttpResponse {
    let issuer = format!("http://{}", request.app_config().local_addr());
    let scripted = {
        let mut script = script.lock();
        script.document_reads += 1;
        let mut usual = json!({
            "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/keys"),
            "userinfo_endpoint": format!("{issuer}/userinfo"), "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            // What no service may use stands here on purpose.
            "id_token_signing_alg_values_supported": ["ES256", "RS256", "HS256", "none"],
        });
        for (name, value) in &script.other {
            usual[*name] = value.clone();
        }
        script.document.clone().unwrap_or(Answer::Json(usual))
    };
    give(scripted).await
}

async fn keys(script: Shared) -> HttpResponse {
    let scripted = {
        let mut script = script.lock();
        script.key_reads += 1;
        let published: Vec<Value> = script.published.iter().map(Key::jwk).collect();
        script.keys.clone().unwrap_or(Answer::Json(json!({ "keys": published })))
    };
    give(scripted).await
}

async fn token(script: Shared, body: String) -> HttpResponse {
    let scripted = {
        let mut script = script.lock();
        script.token_requests.push(body);
        script.token.clone()
    };
    give(scripted.unwrap_or(Answer::Status(500))).await
}

async fn userinfo(script: Shared) -> HttpResponse {
    let scripted = script.lock().userinfo.clone();
    give(scripted.unwrap_or(Answer::Status(500))).await
}

async fn give(answer: Answer) -> HttpResponse {
    match answer {
        Answer::Json(body) => HttpResponse::Ok().json(body),
        Answer::Status(status) => {
            HttpResponse::build(status.try_into().unwrap()).json(json!({ "error": "invalid_grant" }))
        }
        Answer::Silence => std::future::pending().await,
        Answer::Endless => {
            let chunk = || Ok::<_, actix_web::Error>(web::Bytes::from_static(&[b' '; 64 * 1024]));
            HttpResponse::Ok().content_type("application/json").streaming(futures_util::stream::repeat_with(chunk))
        }
    }
}
