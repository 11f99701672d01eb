//! `/help`: the documents as a browser gets them. What their pages do stands in web/tests.

use std::fs;
use std::path::Path;

use signalbox::config::WebInterface;

use crate::support::{Answer, TestService};

/// What a browser says that it takes when somebody types an address.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

/// The addresses of all documents but the decisions.
fn addresses() -> Vec<String> {
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"), "/help", &mut found);
    found
}

fn collect(directory: &Path, address: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap().to_owned();
        if path.is_dir() && name != "decisions" {
            collect(&path, &format!("{address}/{name}"), found);
        } else if name == "README.md" {
            found.push(address.to_owned());
        } else if let Some(page) = name.strip_suffix(".md") {
            found.push(format!("{address}/{page}"));
        }
    }
}

/// The address of the search's index, which every page names.
fn index_of(page: &Answer) -> String {
    let (_, rest) = page.text.split_once("data-search=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[actix_web::test]
async fn every_document_is_a_page_for_everybody() {
    let service = TestService::start().await;
    let addresses = addresses();
    assert!(addresses.contains(&"/help".to_owned()) && addresses.contains(&"/help/guides/agents".to_owned()));

    for address in addresses {
        let answer = service.root.get(&address).expect_answer(200).await;

        assert!(answer.text.starts_with("<!doctype html>"), "{address}");
        assert!(answer.text.contains("<h1 id="), "{address}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{address}");
        assert_eq!(answer.header("cache-control"), "no-cache", "{address}");
    }
}

#[actix_web::test]
async fn pages_of_the_help_obey_the_policy_of_the_interface() {
    let service = TestService::start().await;
    let interface = service.root.get("/").expect_answer(200).await;

    let page = service.root.get("/help/guides/agents").expect_answer(200).await;

    for header in ["content-security-policy", "referrer-policy", "cross-origin-opener-policy", "x-content-type-options"]
    {
        assert!(!page.header(header).is_empty(), "{header}");
        assert_eq!(page.header(header), interface.header(header), "{header}");
    }
    let scripts: Vec<&str> = page.text.split("<script").skip(1).collect();
    assert!(!scripts.is_empty() && scripts.iter().all(|script| script.contains("src=\"/")), "{}", page.text);
}

#[actix_web::test]
async fn the_help_is_sent_compressed() {
    let service = TestService::start().await;
    let plain = service.root.get("/help/start").header("accept-encoding", "identity").expect_answer(200).await;

    for encoding in ["br", "gzip"] {
        let answer = service.root.get("/help/start").header("accept-encoding", encoding).expect_answer(200).await;

        assert_eq!(answer.header("content-encoding"), encoding);
        assert_eq!(answer.header("vary"), "accept-encoding");
        let [sent, whole] = [&answer, &plain].map(|each| each.header("content-length").parse::<usize>().unwrap());
        assert!(sent < whole, "{sent} of {whole} bytes");
    }
}

#[actix_web::test]
async fn the_index_of_the_search_names_every_document() {
    let service = TestService::start().await;
    let page = service.root.get("/help").expect_answer(200).await;

    let index = service.root.get(index_of(&page)).expect_answer(200).await;

    assert_eq!(index.header("content-type"), "application/json");
    assert_eq!(index.header("cache-control"), "public, max-age=31536000, immutable");
    let mut named: Vec<String> =
        index.json().as_array().unwrap().iter().map(|page| page["address"].as_str().unwrap().to_owned()).collect();
    let mut expected = addresses();
    named.sort();
    expected.sort();
    assert_eq!(named, expected);
}

#[actix_web::test]
async fn an_address_below_the_help_that_nobody_knows_is_not_found() {
    let service = TestService::start().await;

    for path in [
        "/help/nope",
        "/help/guides",
        "/help/guides/nope/",
        "/help/guides/agents.md",
        "/help/guides/agents.html",
        "/help//guides/agents",
        "/help/README",
        "/help/decisions/README",
        "/help/..%2findex",
        "/help/guides/..%2fstart",
        "/help/..%2f..%2f..%2fetc%2fpasswd",
        "/help/..%5c..%5cindex",
    ] {
        let answer = service.root.get(path).header("accept", BROWSER).expect_answer(404).await;

        assert!(answer.text.contains("Page not found"), "{path}");
        assert!(answer.text.contains("href=\"/help/start\""), "{path}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert!(answer.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
        service.root.get(path).expect_error(404, "not_found").await;
    }
    for path in ["/help.html", "/help-unknown", "/help-unknown.html"] {
        service.root.get(path).expect_error(404, "not_found").await;
    }
    service.root.post("/help/start").expect_error(405, "method_not_allowed").await;
}

#[actix_web::test]
async fn a_slash_at_the_end_leads_to_the_page_without_it() {
    let service = TestService::start().await;

    for (path, page) in [("/help/", "/help"), ("/help/guides/agents/", "/help/guides/agents")] {
        let answer = service.root.get(path).expect_answer(307).await;

        assert_eq!(answer.header("location"), page);
    }
}

#[actix_web::test]
async fn without_the_interface_there_is_no_help() {
    let service = TestService::start_with(|config| config.web = WebInterface::Off).await;

    for path in ["/help", "/help/start", "/help/nope"] {
        service.root.get(path).header("accept", BROWSER).expect_error(404, "not_found").await;
    }
}
