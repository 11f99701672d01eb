//! The script as it is served: which address it contains, and that nothing else gets into it.

use super::{Shop, shell};
use crate::support::command_line::run;
use crate::support::raw::RawSocket;
use crate::support::{TestService, behind_a_proxy};

/// The line with the service's address.
fn address_of(script: &str) -> &str {
    let line = script.lines().find_map(|line| line.trim().strip_prefix("service_url='"));
    line.and_then(|line| line.strip_suffix('\'')).unwrap_or_else(|| panic!("no address in {script}"))
}

#[actix_web::test]
async fn it_has_the_address_that_it_came_from() {
    let shop = Shop::empty().await;

    let answer = shop.service.root.get("/install.sh").expect_answer(200).await;

    assert_eq!(address_of(&answer.text), shop.url());
    assert_eq!(answer.header("Content-Type"), "text/x-shellscript; charset=utf-8");
    assert_eq!(answer.header("Cache-Control"), "no-store");
}

#[actix_web::test]
async fn it_has_the_address_that_the_proxy_tells() {
    let shop = Shop::empty().await;

    let call = shop.service.root.get("/install.sh").header("X-Forwarded-Proto", "https");
    let answer = call.header("X-Forwarded-Host", "box.example.com").expect_answer(200).await;

    assert_eq!(address_of(&answer.text), "https://box.example.com");
}

#[actix_web::test]
async fn the_public_address_counts_more_than_the_request() {
    let service =
        TestService::start_with(|config| config.public_url = Some("https://example.com/box/".to_owned())).await;

    let answer = service.root.get("/install.sh").header("X-Forwarded-Host", "evil.example").expect_answer(200).await;
    let list = service.root.get("/install").expect(200).await;

    assert_eq!(address_of(&answer.text), "https://example.com/box");
    assert_eq!(list["script"], "https://example.com/box/install.sh");
}

#[actix_web::test]
async fn a_public_address_that_does_not_fit_into_a_script_gives_none() {
    let service = TestService::start_with(|config| config.public_url = Some("https://a';id;'".to_owned())).await;

    for path in ["/install.sh", "/install"] {
        service.root.get(path).expect_error(500, "internal_error").await;
    }
}

#[actix_web::test]
async fn no_header_gets_a_command_into_it() {
    let service = TestService::start_with(behind_a_proxy).await;
    let hosts = [
        "a';id;'", "a$(id)", "a`id`", "a\"b", "a b", "a;id", "a|id", "a&id", "a\\", "a/x", "evil@a", "a:b", "a:99999",
        "[a]",
    ];

    for path in ["/install.sh", "/install"] {
        for host in hosts {
            let mut socket = RawSocket::connect(service.address).await;
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            socket.write(request.as_bytes()).await.unwrap();
            let answer = String::from_utf8(socket.read_to_end().await).unwrap();
            assert!(answer.starts_with("HTTP/1.1 400 "), "{host}: {answer}");

            service.root.get(path).header("X-Forwarded-Host", host).expect_refusal(400).await;
        }
        for scheme in ["javascript", "https://evil.example/;", "'"] {
            service.root.get(path).header("X-Forwarded-Proto", scheme).expect_error(400, "bad_request").await;
        }
    }
}

#[actix_web::test]
async fn every_shell_can_read_it() {
    let shop = Shop::empty().await;

    for reader in [["sh"].as_slice(), &["dash"], &["bash", "--posix"], &["busybox", "ash"]] {
        let mut command = shell(r#"url=$1; shift; curl -fsSL "$url/install.sh" | "$@" -n"#);
        command.arg(shop.url()).args(reader);
        let outcome = run(command).await;

        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{reader:?}: {outcome:?}");
    }
}
