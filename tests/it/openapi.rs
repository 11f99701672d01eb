//! The OpenAPI document and the two pages that show it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{TestService, text_of};

const PREFIXES: [&str; 2] = ["", "/api/v1"];

/// The operations that the specification requires of the existing resources.
const OPERATIONS: [&str; 57] = [
    "post /api/v1/auth/register",
    "post /api/v1/auth/login",
    "post /api/v1/auth/refresh",
    "get /api/v1/auth/me",
    "put /api/v1/auth/me",
    "post /api/v1/auth/change-password",
    "post /api/v1/auth/logout",
    "get /api/v1/auth/sessions",
    "delete /api/v1/auth/sessions/{id}",
    "post /api/v1/auth/totp",
    "post /api/v1/auth/totp/confirm",
    "delete /api/v1/auth/totp",
    "post /api/v1/auth/passkeys/registration",
    "post /api/v1/auth/passkeys",
    "post /api/v1/auth/passkeys/challenge",
    "post /api/v1/auth/passkeys/login",
    "delete /api/v1/auth/passkeys/{id}",
    "post /api/v1/auth/step-up",
    "get /api/v1/servers",
    "post /api/v1/servers",
    "get /api/v1/servers/{id}",
    "put /api/v1/servers/{id}",
    "delete /api/v1/servers/{id}",
    "get /api/v1/metrics/{server_id}",
    "get /api/v1/metrics/{server_id}/history",
    "get /api/v1/metrics/{server_id}/series",
    "get /api/v1/metrics/{server_id}/prometheus",
    "get /api/v1/metrics/prometheus",
    "get /api/v1/metrics/fleet",
    "get /api/v1/metrics/fleet/heat",
    "get /api/v1/events",
    "get /api/v1/api-keys/me",
    "post /api/v1/api-keys",
    "delete /api/v1/api-keys/{id}",
    "get /api/v1/audit",
    "get /api/v1/service",
    "get /api/v1/alerts",
    "get /api/v1/alerts/summary",
    "get /api/v1/alerts/{id}",
    "post /api/v1/alerts/{id}/acknowledge",
    "post /api/v1/alerts/{id}/resolve",
    "post /api/v1/alerts/{id}/notes",
    "get /api/v1/alerts/thresholds",
    "post /api/v1/alerts/thresholds",
    "get /api/v1/alerts/thresholds/{id}",
    "put /api/v1/alerts/thresholds/{id}",
    "delete /api/v1/alerts/thresholds/{id}",
    "get /api/v1/alerts/silences",
    "post /api/v1/alerts/silences",
    "get /api/v1/alerts/silences/{id}",
    "put /api/v1/alerts/silences/{id}",
    "delete /api/v1/alerts/silences/{id}",
    "get /api/v1/agents/ws",
    "get /api/v1/ws/metrics/{server_id}",
    "get /api/v1/ws/alerts",
    "get /api/v1/ws/fleet",
    "get /api/v1/ws/logs/{server_id}",
];

#[actix_web::test]
async fn the_committed_document_is_the_codes() {
    let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json")).unwrap();
    let committed: Value = serde_json::from_str(&file).unwrap();

    assert_eq!(committed, signalbox::http::openapi::document(), "run `signalbox openapi > openapi.json`");
}

#[actix_web::test]
async fn the_service_serves_the_document() {
    let service = TestService::start().await;

    for prefix in PREFIXES {
        let served = service.root.get(format!("{prefix}/openapi.json")).expect(200).await;
        assert_eq!(served, signalbox::http::openapi::document());
    }
}

#[test]
fn the_document_describes_every_operation() {
    let document = signalbox::http::openapi::document();
    let base = document["servers"][0]["url"].as_str().unwrap_or_default().trim_end_matches('/');
    let mut described = BTreeSet::new();

    for (path, operations) in document["paths"].as_object().unwrap() {
        described.extend(operations.as_object().unwrap().keys().map(|method| format!("{method} {base}{path}")));
    }

    for operation in OPERATIONS {
        assert!(described.contains(operation), "{operation} is not in {described:?}");
    }
}

#[test]
fn the_document_says_how_to_sign_in() {
    let document = signalbox::http::openapi::document();

    let schemes: Vec<&Value> = document["components"]["securitySchemes"].as_object().unwrap().values().collect();

    let is_bearer =
        |scheme: &&Value| scheme["type"] == "http" && scheme["scheme"] == "bearer" || scheme["type"] == "oauth2";
    assert!(schemes.iter().any(is_bearer), "{schemes:?}");
}

#[actix_web::test]
async fn the_pages_need_nothing_from_elsewhere() {
    let service = TestService::start().await;

    for prefix in PREFIXES {
        for page in ["docs", "redoc"] {
            let answer = service.root.get(format!("{prefix}/{page}")).expect_answer(200).await;

            assert!(answer.header("Content-Type").starts_with("text/html"), "{:?}", answer.headers);
            assert!(answer.text.contains("<html"), "{answer}");
            let links = links_of(&answer.text);
            assert!(links.iter().any(|link| link.ends_with(".js")), "{answer}");
            for link in links {
                assert_asset(&service, &format!("{prefix}/{page}"), &link).await;
            }
        }
    }
}

/// The values of a page's `src` and `href` attributes.
fn links_of(html: &str) -> Vec<String> {
    let of_attribute = |attribute: &str| -> Vec<String> {
        let values = html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
        values.map(str::to_owned).collect()
    };
    [of_attribute("src=\""), of_attribute("href=\"")].concat()
}

/// Asserts that a link of a page leads to an asset of the service, of the right type.
async fn assert_asset(service: &TestService, page: &str, link: &str) {
    if link.starts_with("data:") {
        return;
    }
    let page_url = reqwest::Url::parse(&format!("http://{}{page}", service.address)).unwrap();
    let url = page_url.join(link).unwrap();
    assert_eq!(url.authority(), page_url.authority(), "{link} of {page} leads elsewhere");

    let answer = service.root.get(url.path()).expect_answer(200).await;

    let content_type = answer.header("Content-Type");
    let expected = match link.rsplit('.').next() {
        Some("js") => "javascript",
        Some("css") => "text/css",
        Some("json") => "application/json",
        Some("png" | "svg" | "ico") => "image/",
        _ => "",
    };
    assert!(content_type.contains(expected), "{link}: {content_type}");
    assert!(!answer.text.is_empty(), "{link} is empty");
}

#[test]
fn every_operation_has_an_id_of_its_own() {
    let document = signalbox::http::openapi::document();
    let mut ids = Vec::new();

    for operations in document["paths"].as_object().unwrap().values() {
        ids.extend(operations.as_object().unwrap().values().filter_map(|operation| operation.get("operationId")));
    }

    let distinct: BTreeSet<String> = ids.iter().map(|id| text_of(id)).collect();
    assert_eq!(distinct.len(), ids.len());
}
