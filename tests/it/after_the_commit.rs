//! The service answers that it is done, whatever fails after the commit, because a caller who gets an error repeats the call.

use sea_orm::{ConnectionTrait, Database, DatabaseConnection};
use serde_json::json;

use crate::support::site::Site;
use crate::support::storage::direct;
use crate::support::{TestService, registration, uuid_of};

/// A database in which something is missing for a while: a table, or a column that only some statements read.
pub(crate) struct Lacking {
    database: DatabaseConnection,
    /// Restores it, after `ALTER TABLE`.
    back: String,
}

impl Lacking {
    pub async fn begin(service: &TestService, table: &'static str) -> Self {
        Self::rename(service, format!("{table} RENAME TO {table}_away"), format!("{table}_away RENAME TO {table}"))
            .await
    }

    async fn column(service: &TestService, table: &str, column: &str) -> Self {
        let away = format!("{table} RENAME COLUMN {column} TO {column}_away");
        Self::rename(service, away, format!("{table} RENAME COLUMN {column}_away TO {column}")).await
    }

    async fn rename(service: &TestService, away: String, back: String) -> Self {
        let database = Database::connect(direct(&service.state.config.database_url())).await.unwrap();
        database.execute_unprepared(&format!("ALTER TABLE {away}")).await.unwrap();
        Self { database, back }
    }

    pub async fn end(self) {
        self.database.execute_unprepared(&format!("ALTER TABLE {}", self.back)).await.unwrap();
        self.database.close().await.unwrap();
    }
}

#[actix_web::test]
async fn a_server_is_made_and_changed_though_its_alerts_cannot_be_read() {
    let site = Site::start().await;
    // They are read with the thresholds, for the evaluator; nothing before the commit reads them.
    let alerts = Lacking::column(&site.service, "alerts", "message").await;

    let post = site.service.client.post("/servers").bearer(&site.owner.token);
    let made = post.json(json!({"name": "web-2", "host": "192.0.2.10"})).expect(201).await;
    let put = site.service.client.put(format!("/servers/{}", uuid_of(&made["id"]))).bearer(&site.owner.token);
    let changed = put.json(json!({"name": "web-3"})).expect(200).await;

    alerts.end().await;
    assert_eq!(changed["name"], "web-3");
    assert_eq!(site.read("/servers").await.as_array().unwrap().len(), 2);
}

#[actix_web::test]
async fn an_account_is_there_with_its_session_or_not_at_all() {
    let service = TestService::start().await;
    let logins = Lacking::begin(&service, "logins").await;

    service.client.post("/auth/register").json(registration("alice")).expect(500).await;

    logins.end().await;
    let again = service.client.post("/auth/register").json(registration("alice")).expect(201).await;
    let token = again["access_token"].as_str().unwrap();
    let me = service.client.get("/auth/me").bearer(token).expect(200).await;
    assert_eq!((&me["username"], &me["is_admin"]), (&json!("alice"), &json!(true)));
}

#[actix_web::test]
async fn a_batch_that_has_begun_is_answered_as_begun() {
    let site = Site::start().await;
    // The answer names the servers; nothing before it does.
    let servers = Lacking::column(&site.service, "servers", "name").await;

    let post = site.service.client.post("/commands").bearer(&site.owner.token);
    let batch = post.json(json!({"server_ids": [site.server_id], "command": "true"})).expect(201).await;

    servers.end().await;
    assert_eq!(batch["results"][0]["server_id"], json!(site.server_id));
    let begun = site.read("/commands/batches").await;
    assert_eq!((begun.as_array().unwrap().len(), &begun[0]["id"]), (1, &batch["id"]));
}

#[actix_web::test]
async fn a_user_who_signs_out_of_two_sessions_is_out_of_both_or_of_none() {
    let service = TestService::start().await;
    let own = service.register("alice").await;
    let other = service.sign_in(&own).await;
    // The first session cannot be ended, because something locks it.
    let database = Database::connect(direct(&service.state.config.database_url())).await.unwrap();
    database.execute_unprepared("CREATE TABLE held (login_id uuid REFERENCES logins (id))").await.unwrap();
    let hold = "INSERT INTO held SELECT id FROM logins ORDER BY id LIMIT 1";
    database.execute_unprepared(hold).await.unwrap();
    let sign_out = || {
        let body = json!({"refresh_token": other.refresh_token});
        service.client.post("/auth/logout").bearer(&own.token).json(body)
    };

    sign_out().expect(500).await;

    for account in [&own, &other] {
        service.client.get("/auth/me").bearer(&account.token).expect(200).await;
    }
    let fresh = service.client.post("/auth/refresh").json(json!({"refresh_token": other.refresh_token}));
    fresh.expect(200).await;
    database.execute_unprepared("DROP TABLE held").await.unwrap();
    database.close().await.unwrap();
    sign_out().expect(200).await;
    for account in [&own, &other] {
        service.client.get("/auth/me").bearer(&account.token).expect(401).await;
    }
}
