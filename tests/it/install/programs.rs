//! The programs and their checksums.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Shop, TRIVIAL, own_program};
use crate::support::raw::RawSocket;

/// More than a service reads or sends at a time.
fn long_program() -> String {
    (0..60_000).map(|number| format!("line {number}\n")).collect()
}

#[actix_web::test]
async fn the_list_has_each_program_with_its_checksum() {
    let shop = Shop::empty().await;
    shop.stock("signalbox-agent-linux-x86_64", "one");
    shop.stock("signalbox-agent-linux-aarch64", "two");
    shop.stock("README", "no program");

    let list = shop.service.root.get("/install").expect(200).await;

    let expected = json!({
        "agents": [
            {
                "os": "linux", "arch": "aarch64", "bytes": 3,
                "sha256": "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
            },
            {
                "os": "linux", "arch": "x86_64", "bytes": 3,
                "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
            },
        ],
        "script": format!("{}/install.sh", shop.url()),
    });
    assert_eq!(list, expected);
}

#[actix_web::test]
async fn a_program_comes_whole_and_uncompressed() {
    let shop = Shop::empty().await;
    let program = long_program();
    shop.stock("signalbox-agent-linux-armv7", &program);

    let answer = shop
        .service
        .root
        .get("/install/signalbox-agent-linux-armv7")
        .header("Accept-Encoding", "gzip, br")
        .expect_answer(200)
        .await;

    assert_eq!(answer.header("Content-Length"), program.len().to_string());
    assert_eq!(answer.header("Content-Type"), "application/octet-stream");
    assert_eq!(answer.header("Content-Encoding"), "identity");
    assert!(answer.text == program, "it came as something else");
}

#[actix_web::test]
async fn the_checksum_is_the_tag_and_a_line_that_sha256sum_reads() {
    let shop = Shop::empty().await;
    shop.stock("signalbox-agent-linux-x86_64", "one");
    let path = "/install/signalbox-agent-linux-x86_64";

    let checksum = shop.service.root.get(format!("{path}.sha256")).expect_answer(200).await;
    let program = shop.service.root.get(path).expect_answer(200).await;
    let tag = program.header("ETag");
    let again = shop.service.root.get(path).header("If-None-Match", tag).send().await;

    let digest = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    assert_eq!(checksum.text, format!("{digest}  signalbox-agent-linux-x86_64\n"));
    assert_eq!(tag, format!("\"{digest}\""));
    assert_eq!((again.status, again.text.as_str()), (304, ""));
}

#[actix_web::test]
async fn a_program_that_was_replaced_is_handed_out_with_its_own_checksum() {
    let shop = Shop::empty().await;
    shop.stock("signalbox-agent-linux-x86_64", "one");
    shop.service.root.get("/install").expect(200).await;

    shop.stock("signalbox-agent-linux-x86_64", "two");

    let path = "/install/signalbox-agent-linux-x86_64";
    let checksum = shop.service.root.get(format!("{path}.sha256")).expect_answer(200).await;
    assert!(checksum.text.starts_with("3fc4ccfe"), "{checksum}");
    assert_eq!(shop.service.root.get(path).expect_answer(200).await.text, "two");
}

#[actix_web::test]
async fn a_platform_without_a_program_is_named() {
    let shop = Shop::open().await;

    for suffix in ["", ".sha256"] {
        let path = format!("/install/signalbox-agent-plan9-pdp11{suffix}");
        let error = shop.service.root.get(path).expect_error(404, "not_found").await;

        let detail = "This service has no agent for plan9-pdp11; /install lists the available ones";
        assert_eq!(error["detail"], detail);
    }
}

#[actix_web::test]
async fn nothing_but_programs_leaves_the_directory() {
    let shop = Shop::open().await;
    let secret = shop.service.state.config.data_dir.join("jwt-secret");
    assert!(secret.exists());
    symlink(&secret, shop.programs.path().join("signalbox-agent-linux-link")).unwrap();
    fs::write(shop.programs.path().join("other"), "not for you").unwrap();
    let depth = "../".repeat(12);
    let paths = [
        "/install/other".to_owned(),
        "/install/signalbox-agent-linux-link".to_owned(),
        format!("/install/{depth}{}", secret.display()),
        format!("/install/signalbox-agent-linux-x/{depth}etc/passwd"),
        "/install/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd".to_owned(),
        "/install/signalbox-agent-linux-..%2fother".to_owned(),
        "/install/signalbox-agent-linux-%2e%2e".to_owned(),
        format!("/install/{}%00", own_program()),
        "/install/".to_owned(),
    ];

    for path in paths {
        let mut socket = RawSocket::connect(shop.service.address).await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        socket.write(request.as_bytes()).await.unwrap();
        let answer = String::from_utf8(socket.read_to_end().await).unwrap();

        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
}

#[actix_web::test]
async fn head_tells_the_length() {
    let shop = Shop::open().await;

    let answer = shop.service.root.call(reqwest::Method::HEAD, &format!("/install/{}", own_program())).send().await;

    assert_eq!((answer.status, answer.text.as_str()), (200, ""));
    assert_eq!(answer.header("Content-Length"), TRIVIAL.len().to_string());
}
