//! `/`: the web interface as a browser receives it. web/tests tests its behaviour.

use signalbox::config::WebInterface;

use crate::support::{Answer, TestService};

/// The addresses of the interface's own list of pages, with values for their parameters.
fn pages() -> Vec<String> {
    let source = include_str!("../../web/src/pages/pages.ts");
    let patterns = source.split("pattern: '").skip(1).filter_map(|rest| rest.split('\'').next());
    let given = |part: &str| match part.strip_prefix(':') {
        Some(_) => "x".to_owned(),
        None => part.to_owned(),
    };
    patterns
        .flat_map(|pattern| {
            let parts: Vec<&str> = pattern.split('/').skip(1).collect();
            let whole = format!("/{}", parts.iter().map(|part| given(part)).collect::<Vec<_>>().join("/"));
            let is_optional = parts.last().is_some_and(|part| part.ends_with('?'));
            let shorter = is_optional.then(|| {
                let but_last = &parts[..parts.len() - 1];
                format!("/{}", but_last.iter().map(|part| given(part)).collect::<Vec<_>>().join("/"))
            });
            [Some(whole), shorter].into_iter().flatten()
        })
        .collect()
}

/// The addresses that a page names in `src` and `href`.
fn named(page: &str) -> Vec<String> {
    let attributes = [" src=\"", " href=\""];
    attributes
        .iter()
        .flat_map(|name| page.split(name).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

/// How many bytes came over the wire.
fn length(answer: &Answer) -> usize {
    answer.header("content-length").parse().unwrap()
}

fn policy(answer: &Answer) -> Vec<&str> {
    answer.header("content-security-policy").split(';').map(str::trim).collect()
}

#[actix_web::test]
async fn every_page_of_the_interface_has_its_address() {
    let service = TestService::start().await;
    let pages = pages();
    assert!(pages.contains(&"/servers/x/x".to_owned()) && pages.contains(&"/servers/x".to_owned()), "{pages:?}");

    for path in pages {
        let answer = service.root.get(&path).expect_answer(200).await;

        assert!(answer.text.starts_with("<!doctype html>"), "{path}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(answer.header("cache-control"), "no-cache", "{path}");
    }
}

/// A browser's `Accept` when a user types an address.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

#[actix_web::test]
async fn a_person_who_mistypes_an_address_gets_a_page_that_says_so() {
    let service = TestService::start().await;
    let index = signalbox_web::asset(signalbox_web::INDEX).unwrap().plain().unwrap();
    let index = std::str::from_utf8(index).unwrap();

    for path in ["/nope", "/alert", "/settings", "/nobody/knows/this", "/apiary"] {
        let answer = service.root.get(path).header("accept", BROWSER).expect_answer(404).await;

        assert_eq!(answer.text, index, "{path}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(answer.header("cache-control"), "no-cache", "{path}");
        assert!(policy(&answer).contains(&"default-src 'none'"), "{path}");
    }
}

#[actix_web::test]
async fn a_program_that_mistypes_an_address_gets_the_shape_of_all_errors() {
    let service = TestService::start().await;

    for accept in ["*/*", "application/json", "text/*", ""] {
        service.root.get("/nope").header("accept", accept).expect_error(404, "not_found").await;
    }
    for path in [
        "/api/v1/nope",
        "/api",
        "/ws/nope",
        "/agents/nope",
        "/docs/nope",
        "/install/nope",
        "/assets/nope.js",
        "/metrics/nope",
    ] {
        service.root.get(path).header("accept", BROWSER).expect_error(404, "not_found").await;
    }
    service.root.post("/nope").header("accept", BROWSER).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn the_page_runs_nothing_that_does_not_come_from_the_service() {
    let service = TestService::start().await;

    let answer = service.root.get("/").expect_answer(200).await;

    let policy = policy(&answer);
    for wanted in
        ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "connect-src 'self'"]
    {
        assert!(policy.contains(&wanted), "{wanted} is not in {policy:?}");
    }
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    let page = answer.text;
    assert!(
        page.split("<script").skip(1).all(|script| script.contains("src=\"/")),
        "a script stands in the page: {page}"
    );
    assert!(named(&page).iter().all(|address| address.starts_with('/') && !address.starts_with("//")), "{page}");
}

/// The files that a page tells the browser to ask for at once.
fn preloaded(page: &str) -> Vec<String> {
    let links = page.split("<link rel=\"").skip(1).filter_map(|rest| rest.split('>').next());
    let wanted = links.filter(|link| link.starts_with("modulepreload") || link.starts_with("stylesheet"));
    wanted.flat_map(named).collect()
}

#[actix_web::test]
async fn each_page_names_the_files_that_it_needs() {
    let service = TestService::start().await;
    let of = async |path: &str| preloaded(&service.root.get(path).expect_answer(200).await.text);
    let names = |files: &[String], part: &str| files.iter().any(|file| file.starts_with(&format!("/assets/{part}-")));

    let (fleet, server, logs) = (of("/").await, of("/servers/x").await, of("/servers/x/logs").await);

    assert!(names(&fleet, "fleet") && !names(&fleet, "Server"), "{fleet:?}");
    assert!(names(&server, "Server") && names(&server, "Overview") && !names(&server, "Logs"), "{server:?}");
    assert!(names(&logs, "Server") && names(&logs, "Logs") && !names(&logs, "Overview"), "{logs:?}");
    assert!(names(&of("/servers/new").await, "AddServer"));
    assert!(names(&of("/account/audit").await, "Account"));
    assert_eq!(of("/servers").await, fleet);
    // A tab that there is not gets the page without them.
    assert!(!names(&of("/servers/x/nonsense").await, "Server"));
    for file in [fleet, server, logs].concat() {
        service.root.get(&file).expect_answer(200).await;
    }
}

#[actix_web::test]
async fn the_interface_can_be_installed() {
    let service = TestService::start().await;
    let page = service.root.get("/").expect_answer(200).await.text;
    assert!(named(&page).contains(&"/manifest.webmanifest".to_owned()), "{page}");

    let answer = service.root.get("/manifest.webmanifest").expect_answer(200).await;

    assert_eq!(answer.header("content-type"), "application/manifest+json");
    let manifest: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!((&manifest["start_url"], &manifest["display"]), (&"/".into(), &"standalone".into()));
    let icons = manifest["icons"].as_array().unwrap();
    let icons: Vec<&str> = icons.iter().filter_map(|icon| icon["src"].as_str()).collect();
    assert!(icons.len() > 2, "{manifest}");
    for file in [&icons[..], &["/apple-touch-icon.png", "/favicon.ico", "/favicon-alert.svg"]].concat() {
        let answer = service.root.get(file).expect_answer(200).await;
        assert!(answer.header("content-type").starts_with("image/"), "{file}");
        let kept = if file.ends_with(".svg") { "no-cache" } else { "public, max-age=86400" };
        assert_eq!(answer.header("cache-control"), kept, "{file}");
    }
    assert!(policy(&answer).contains(&"manifest-src 'self'"));
}

#[actix_web::test]
async fn the_service_worker_is_asked_for_each_time_and_may_be_one() {
    let service = TestService::start().await;
    let page = service.root.get("/").expect_answer(200).await;

    let answer = service.root.get("/sw.js").expect_answer(200).await;

    assert_eq!(answer.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(answer.header("cache-control"), "no-cache");
    assert!(policy(&page).contains(&"worker-src 'self'"));
    let badge = service.root.get("/badge-96.png").expect_answer(200).await;
    assert_eq!(badge.header("content-type"), "image/png");
    // No page comes from a cache of its own.
    assert!(!answer.text.contains("'fetch'") && !page.text.contains("sw.js"));
}

#[actix_web::test]
async fn its_files_are_compressed_and_kept_by_browsers() {
    let service = TestService::start().await;
    let page = service.root.get("/").expect_answer(200).await.text;
    let files: Vec<String> =
        named(&page).into_iter().filter(|name| name != "/docs" && !name.ends_with(".png")).collect();
    assert!(files.iter().any(|name| name.starts_with("/assets/") && name.ends_with(".js")), "{page}");

    for file in files {
        let plain = service.root.get(&file).header("accept-encoding", "identity").expect_answer(200).await;
        assert_eq!(plain.header("content-encoding"), "", "{file}");
        for encoding in ["br", "gzip"] {
            let answer = service.root.get(&file).header("accept-encoding", encoding).expect_answer(200).await;

            assert_eq!(answer.header("content-encoding"), encoding, "{file}");
            assert_eq!(answer.header("vary"), "accept-encoding", "{file}");
            assert_eq!(answer.header("content-type"), plain.header("content-type"), "{file}");
            assert!(length(&answer) < length(&plain), "{file}");
        }
        let kept = if file.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
        assert_eq!(plain.header("cache-control"), kept, "{file}");
    }
    service.root.get("/assets/nothing.js").expect_error(404, "not_found").await;
    service.root.get("/assets/..%2findex.html").expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn without_the_interface_the_root_leads_to_the_documentation() {
    let service = TestService::start_with(|config| config.web = WebInterface::Off).await;

    let answer = service.root.get("/").expect_answer(307).await;

    assert_eq!(answer.header("location"), "/docs");
    service.root.get("/sign-in").expect_error(404, "not_found").await;
    service.root.get("/theme.js").expect_error(404, "not_found").await;
    service.root.get("/nope").header("accept", BROWSER).expect_error(404, "not_found").await;
}
