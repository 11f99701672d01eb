//! Servers: by name and by id, for people and for programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::Site;

#[tokio::test]
async fn a_server_is_added_shown_listed_and_removed() {
    let site = Site::start().await;

    let added =
        site.run(&["servers", "add", "web-1", "--host", "192.0.2.1", "--tag", "production", "-o", "json"]).await;
    let id = added.json()["id"].as_str().unwrap().to_owned();
    let shown = site.run(&["servers", "show", "web-1"]).await;
    let listed = site.run(&["servers", "--tag", "production"]).await;
    let csv = site.run(&["servers", "ls", "-o", "csv"]).await;
    let unsure = site.run(&["servers", "rm", "web-1"]).await;
    let removed = site.run(&["servers", "rm", &id, "--yes"]).await;
    let gone = site.run(&["servers", "-o", "json"]).await;

    assert!(shown.done().contains(&id) && shown.done().contains("192.0.2.1 (SSH port 22)"), "{shown:?}");
    let row = format!("web-1  pending  192.0.2.1  production  never      owner  {id}\n");
    assert!(listed.done().ends_with(&row), "{listed:?}");
    assert!(csv.done().ends_with(&format!("web-1,pending,192.0.2.1,production,never,owner,{id}\r\n")), "{csv:?}");
    unsure.refused(2, "confirm with --yes");
    assert_eq!(removed.done(), "Deleted web-1.\n");
    assert_eq!(gone.done(), "[]\n");
}

#[tokio::test]
async fn a_key_is_written_to_a_new_file_and_never_printed() {
    let site = Site::start().await;
    let file = site.home.path().join("web-1.key");
    let name = file.to_str().unwrap();

    let added = site.run(&["servers", "add", "web-1", "--host", "192.0.2.1", "--key-file", name]).await;
    let again = site.run(&["servers", "add", "web-2", "--host", "192.0.2.2", "--key-file", name]).await;

    let key = fs::read_to_string(&file).unwrap();
    assert!(key.starts_with("sbk_"));
    assert!(!added.done().contains(key.trim()), "{added:?}");
    assert!(added.done().contains("install.sh | sudo sh -s -- --key-file"), "{added:?}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    again.refused(2, "cannot create");
    assert_eq!(site.get("/servers").await.as_array().unwrap().len(), 1, "nothing is added without a place for its key");
}

#[tokio::test]
async fn a_server_whose_key_is_refused_is_named_and_leaves_no_file() {
    let site = Site::start_with(&["--quota-api-keys", "1"]).await;
    let first = site.add_server("web-1", &[]).await;
    site.post("/api-keys", &json!({"server_id": first, "name": "web-1"})).await;
    let file = site.home.path().join("web-2.key");
    let add = ["servers", "add", "web-2", "--host", "192.0.2.2", "--key-file", file.to_str().unwrap()];

    let refused = site.run(&add).await;

    refused.refused(1, "--quota-api-keys");
    let found = site.get("/servers?q=web-2").await;
    let id = found[0]["id"].as_str().unwrap();
    refused.refused(1, &format!("the server web-2 ({id}) was added, but no key for it could be kept"));
    refused.refused(1, &format!("`signalboxctl servers rm {id}`"));
    assert!(!file.exists());
}

#[tokio::test]
async fn an_ambiguous_name_lists_those_that_have_it() {
    let site = Site::start().await;
    let first = site.add_server("web-1", &[]).await;
    let second = site.add_server("web-1", &[]).await;
    site.add_server("web-10", &[]).await;

    let ambiguous = site.run(&["servers", "show", "web-1"]).await;
    let similar = site.run(&["servers", "show", "web"]).await;
    let unknown = site.run(&["servers", "show", "db"]).await;
    let by_id = site.run(&["servers", "show", &first]).await;

    ambiguous.refused(2, "2 servers have the name \"web-1\"");
    assert!(ambiguous.stderr.contains(&first) && ambiguous.stderr.contains(&second), "{ambiguous:?}");
    similar.refused(1, "did you mean");
    unknown.refused(1, "`signalboxctl servers` lists all");
    by_id.done();
}

#[tokio::test]
async fn faults_of_a_request_are_in_one_line() {
    let site = Site::start().await;

    let outcome = site.run(&["servers", "add", "web-1", "--host", "not a host"]).await;

    outcome.refused(1, "signalboxctl: host: ");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
}
