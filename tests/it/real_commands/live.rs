//! `WS /ws/commands/{server_id}/{command_id}`: a command as it runs.

use std::net::SocketAddr;

use serde_json::{Value, json};
use uuid::Uuid;

use super::Scene;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;

/// Far more than is stored, and than sockets buffer.
const FLOOD: u64 = 20_000_000;

fn path(site: &Site, id: Uuid) -> String {
    format!("/api/v1/ws/commands/{}/{id}", site.server_id)
}

async fn watch(site: &Site, id: Uuid) -> Dashboard {
    open(site.service.address, &path(site, id), &site.owner.token).await.unwrap()
}

async fn open(address: SocketAddr, path: &str, token: &str) -> Result<Dashboard, u16> {
    Dashboard::open(address, path, Pass::Header(token), &[]).await
}

/// The next piece of output, which must be this one, after this many bytes.
async fn expect_output(reader: &mut Dashboard, stream: &str, data: &str, offset: u64) {
    let output = reader.expect("output").await;
    assert_eq!(output, json!({"stream": stream, "data": data, "offset": offset}));
}

/// The result, with nothing after it.
async fn expect_end(reader: &mut Dashboard) -> Value {
    let result = reader.expect("result").await;
    reader.expect_close(1000).await;
    result
}

#[actix_web::test]
async fn a_reader_sees_what_came_so_far_what_comes_and_the_result() {
    let scene = Scene::start().await;
    let gate = scene.machine.gate();
    let id = scene.site.begin(&format!("echo one; {}; echo two >&2; exit 3", gate.wait())).await;

    let mut first = watch(&scene.site, id).await;
    expect_output(&mut first, "stdout", "one\n", 0).await;
    let mut second = watch(&scene.site, id).await;
    expect_output(&mut second, "stdout", "one\n", 0).await;
    gate.open();

    for reader in [&mut first, &mut second] {
        expect_output(reader, "stderr", "two\n", 4).await;
        let result = expect_end(reader).await;
        assert_eq!((&result["command_id"], &result["status"]), (&json!(id), &json!("failed")));
        assert_eq!((&result["exit_code"], &result["truncated"]), (&json!(3), &json!(false)));
    }
    assert_eq!(scene.site.command(id).await["output"], "one\ntwo\n");
}

#[actix_web::test]
async fn a_command_that_has_ended_is_shown_whole() {
    let scene = Scene::start().await;
    let id = scene.site.begin("echo one").await;
    scene.site.until_command(id, "succeeded").await;

    let mut reader = watch(&scene.site, id).await;

    expect_output(&mut reader, "stdout", "one\n", 0).await;
    assert_eq!(expect_end(&mut reader).await["status"], "succeeded");
}

#[actix_web::test]
async fn somebody_elses_command_does_not_exist() {
    let scene = Scene::start().await;
    let site = &scene.site;
    let other = site.service.register("mallory").await;
    let other_server = site.service.server(&other, "web-9").await;
    let id = site.begin("true").await;
    let address = site.service.address;

    let theirs = format!("/api/v1/ws/commands/{other_server}/{id}");
    assert_eq!(open(address, &path(site, id), &other.token).await.unwrap_err(), 404);
    assert_eq!(open(address, &theirs, &other.token).await.unwrap_err(), 404);
    assert_eq!(open(address, &path(site, Uuid::now_v7()), &site.owner.token).await.unwrap_err(), 404);
    assert_eq!(open(address, &path(site, id), "no token").await.unwrap_err(), 401);
}

#[actix_web::test]
async fn a_slow_reader_delays_no_other_and_learns_what_is_omitted() {
    let scene = Scene::start().await;
    let gate = scene.machine.gate();
    let command = format!("echo begin; {}; head -c {FLOOD} /dev/zero | tr '\\0' x; echo end", gate.wait());
    let id = scene.site.begin(&command).await;
    let mut slow = watch(&scene.site, id).await;
    expect_output(&mut slow, "stdout", "begin\n", 0).await;

    gate.open();
    // It reads nothing until the command has ended.
    scene.site.until_command(id, "succeeded").await;
    let (mut place, mut left_out, mut last) = (6, 0, String::new());
    let result = loop {
        let mut message = slow.next().await;
        let data = message["data"].take();
        match message["type"].as_str().unwrap() {
            "left_out" => left_out += data["bytes"].as_u64().unwrap(),
            "output" => {
                assert_eq!(data["offset"], json!(place + left_out), "a gap is reported");
                last = data["data"].as_str().unwrap().to_owned();
                place += last.len() as u64;
            }
            _ => break data,
        }
    };

    assert_eq!(place + left_out, FLOOD + "begin\nend\n".len() as u64);
    assert!(left_out > FLOOD / 2 && last.ends_with("xend\n"), "{left_out} bytes were left out");
    assert_eq!((&result["status"], &result["truncated"]), (&json!("succeeded"), &json!(true)));
    slow.expect_close(1000).await;
}
