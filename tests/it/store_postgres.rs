//! PostgreSQL only: transactions that collide, and migrations of many instances.

use actix_web::rt;
use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement, TransactionTrait};
use serde_json::json;
use signalbox::store::history::FreshSample;
use signalbox::store::{Commit, DatabaseSettings, NewInstance, Store};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::cluster::Cluster;
use crate::support::command_line::{Outcome, run, signalbox};
use crate::support::{PASSWORD, Storage, TestService, eventually, rows, text_of};

const INSTANCES: usize = 8;

/// An empty PostgreSQL database, and a connection to it; none on SQLite.
async fn postgres() -> Option<(Storage, DatabaseConnection)> {
    let storage = Storage::empty().await;
    if storage.config().is_embedded() {
        return None;
    }
    let connection = Database::connect(storage.direct_url()).await.unwrap();
    Some((storage, connection))
}

async fn number(connection: &impl ConnectionTrait, query: &str) -> i64 {
    let statement = Statement::from_string(connection.get_database_backend(), query);
    connection.query_one_raw(statement).await.unwrap().unwrap().try_get_by_index(0).unwrap()
}

/// Waits until a connection waits for a lock.
async fn somebody_waits(connection: &DatabaseConnection) {
    one_waits(connection, "datname = current_database()").await;
}

/// Waits until one of these connections waits for a lock.
async fn one_waits(connection: &DatabaseConnection, these: &str) {
    let waiting = format!("SELECT count(*) FROM pg_stat_activity WHERE {these} AND wait_event_type = 'Lock'");
    eventually("a lock is waited for", async || (number(connection, &waiting).await > 0).then_some(())).await;
}

/// Runs something that locks the `rows` in the opposite order. Our connection never looks for deadlocks, so the other's
/// transaction is ended.
///
/// That looks for one once in each of its waits. So it waits for the older of two that share the first rows, and for us only
/// when we wait for it: no pause can make the look come too early.
async fn collided<T>(connection: &DatabaseConnection, rows: [&str; 2], work: impl Future<Output = T>) -> T {
    let [first, second] = rows;
    let older = connection.begin().await.unwrap();
    older.execute_unprepared(&format!("{first} FOR SHARE")).await.unwrap();
    let ours = connection.begin().await.unwrap();
    ours.execute_unprepared(&format!("SET LOCAL deadlock_timeout = '1h'; {first} FOR SHARE")).await.unwrap();
    let we = format!("pid = {}", number(&ours, "SELECT pg_backend_pid()::bigint").await);
    let opposite = async {
        somebody_waits(connection).await;
        let locking = async {
            ours.execute_unprepared(&format!("{second} FOR UPDATE")).await.unwrap();
        };
        let leaving = async {
            one_waits(connection, &we).await;
            older.rollback().await.unwrap();
        };
        tokio::join!(locking, leaving);
        ours.commit().await.unwrap();
    };
    tokio::join!(work, opposite).0
}

#[actix_web::test]
async fn a_change_that_is_the_victim_of_a_deadlock_goes_through() {
    let Some((storage, connection)) = postgres().await else { return };
    let service = TestService::start_on(storage, |_| {}).await;
    let owner = service.register("owner").await;
    let server_id = service.server(&owner, "web-1").await;

    // It locks the server, and waits for the head of the log.
    let path = format!("/servers/{server_id}");
    let change = service.client.put(path).bearer(&owner.token).json(json!({ "name": "web-2" })).expect(200);
    let changed = collided(&connection, ["SELECT * FROM audit_head", "SELECT * FROM servers"], change).await;

    assert_eq!(changed["name"], "web-2");
    let metrics = service.root.get("/metrics").expect_answer(200).await;
    // Two, if it tries again before we have left the rows.
    let retries = metrics.text.lines().find_map(|line| line.strip_prefix("signalbox_transaction_retries_total "));
    assert!(["1", "2"].map(Some).contains(&retries), "{metrics}");
}

#[actix_web::test]
async fn an_invited_account_has_its_grants_though_its_client_disconnected() {
    let Some((storage, connection)) = postgres().await else { return };
    let service = TestService::start_on(storage, |_| {}).await;
    let admin = service.register("admin").await;
    service.server(&admin, "web-1").await;
    let grants = json!({ "grants": [{ "scope": { "all": true }, "role": "viewer" }] });
    let invitation = service.client.post("/users/invitations").bearer(&admin.token).json(grants).expect(201).await;
    let mut body = service.registration("bob");
    body["invitation"] = invitation["token"].clone();
    // Registering does not need the table; reading the grants afterwards does.
    let holder = connection.begin().await.unwrap();
    holder.execute_unprepared("LOCK TABLE team_members").await.unwrap();

    let asking = rt::spawn(service.client.post("/auth/register").json(body).send());
    let accounts = "SELECT count(*) FROM users WHERE username = 'bob'";
    eventually("the account is stored", async || (number(&connection, accounts).await > 0).then_some(())).await;
    somebody_waits(&connection).await;
    asking.abort();
    let connections = &service.state.limits.connections;
    eventually("its client is gone", async || (connections.count() == 0).then_some(())).await;
    holder.rollback().await.unwrap();

    let form = [("username", "bob"), ("password", PASSWORD)];
    let token = text_of(&service.client.post("/auth/login").form(&form).expect(200).await["access_token"]);
    eventually("bob sees the server", async || {
        let servers = service.client.get("/servers").bearer(&token).expect(200).await;
        (servers.as_array().unwrap().len() == 1).then_some(())
    })
    .await;
}

#[actix_web::test]
async fn many_instances_that_start_at_once_on_an_empty_database_all_come_up() {
    if postgres().await.is_none() {
        return;
    }

    let cluster = Cluster::start(INSTANCES).await;

    for instance in (0..cluster.count()).map(|index| cluster.at(index)) {
        instance.client.get("/servers").expect_error(401, "not_authenticated").await;
    }
    let connection = Database::connect(cluster.storage.direct_url()).await.unwrap();
    let applied = number(&connection, "SELECT count(*) FROM seaql_migrations").await;
    assert_eq!(usize::try_from(applied).unwrap(), Migrator::migrations().len());
}

#[actix_web::test]
async fn a_start_on_a_current_schema_waits_for_no_lock() {
    let Some((storage, connection)) = postgres().await else { return };
    storage.store().await.close().await;
    let holder = connection.begin().await.unwrap();
    // Readers pass; changes of the schema and migrations do not.
    holder
        .execute_unprepared(
            "LOCK TABLE seaql_migrations, servers, users IN EXCLUSIVE MODE; \
             SELECT pg_advisory_xact_lock(91574194028876)",
        )
        .await
        .unwrap();

    let store = storage.store().await;

    store.ping().await.unwrap();
    store.close().await;
    holder.rollback().await.unwrap();
}

async fn migrate(storage: &Storage) -> Outcome {
    let mut command = signalbox(&["migrate", "--data-dir"]);
    command.arg(storage.path());
    storage.named_to(&mut command);
    // Its log is not part of its output.
    command.env("SIGNALBOX_LOG", "off");
    run(command).await
}

#[actix_web::test]
async fn the_command_line_migrates_and_says_what_it_did() {
    let Some((storage, _connection)) = postgres().await else { return };

    let first = migrate(&storage).await;
    let second = migrate(&storage).await;

    let names = Migrator::migrations().iter().map(|one| format!("applied {}\n", one.name())).collect::<String>();
    assert_eq!(first.printed(), format!("{names}the schema is up to date\n"));
    assert_eq!(second.printed(), "the schema is up to date\n");
}

#[actix_web::test]
async fn a_migration_that_finds_a_table_in_use_gives_up_and_says_so() {
    let Some((storage, connection)) = postgres().await else { return };
    storage.store().await.close().await;
    Migrator::down(&connection, Some(1)).await.unwrap();
    let holder = connection.begin().await.unwrap();
    holder.execute_unprepared("LOCK TABLE seaql_migrations IN SHARE MODE").await.unwrap();

    let refused = migrate(&storage).await;

    refused.assert_refused("a table is in use");
    holder.rollback().await.unwrap();
    assert!(migrate(&storage).await.printed().starts_with("applied "));
}

#[actix_web::test]
async fn a_database_whose_connections_are_all_in_use_is_not_away() {
    let Some((storage, connection)) = postgres().await else { return };
    let config = storage.config();
    let one = DatabaseSettings { connections: 1, ..config.database };
    let store = Store::open(&config.database_url(), one).await.unwrap();
    let ours = connection.begin().await.unwrap();
    ours.execute_unprepared("LOCK TABLE audit_head").await.unwrap();
    let waiting = rt::spawn({
        let store = store.clone();
        async move { store.audit_head().await }
    });
    somebody_waits(&connection).await;

    let answered = store.ping().await;

    ours.commit().await.unwrap();
    waiting.await.unwrap().unwrap();
    answered.unwrap();
}

#[actix_web::test]
async fn a_group_commit_and_the_removal_of_a_history_survive_a_deadlock() {
    let Some((storage, connection)) = postgres().await else { return };
    let store = storage.store().await;
    let owner_id = rows::owner(&store).await;
    let first = rows::server(&store, owner_id, "web-1", "web").await;
    let second = rows::server(&store, owner_id, "web-2", "web").await;
    let now = Timestamp::now();
    let sample = |at| FreshSample { server_id: first, session_id: Uuid::nil(), at, data: vec![1] };
    let samples = vec![sample(1), sample(2)];
    let commit = Commit { samples, seen: vec![(first, now), (second, now)], ..Commit::default() };

    let of = |id: Uuid| format!("SELECT * FROM servers WHERE id = '{id}'");
    collided(&connection, [&of(second), &of(first)], store.commit(Uuid::nil(), &commit)).await.unwrap();
    let of = |at: i64| format!("SELECT * FROM history_samples WHERE at = {at}");
    collided(&connection, [&of(2), &of(1)], store.delete_history(first)).await.unwrap();

    assert_eq!(number(&connection, "SELECT count(*) FROM history_samples").await, 0);
}

/// After an outage for all of them, every instance was silent for long.
#[actix_web::test]
async fn a_batch_is_taken_over_once_its_instance_was_removed_and_not_before() {
    let Some((storage, connection)) = postgres().await else { return };
    let store = storage.store().await;
    let owner_id = rows::owner(&store).await;
    let (silent, alive) = (Uuid::from_u128(1), Uuid::from_u128(2));
    for id in [silent, alive] {
        store.enter(&NewInstance { id, version: "1", mark: "secrets".to_owned() }).await.unwrap();
    }
    let batch = format!(
        "UPDATE instances SET seen_at = 0 WHERE id = '{silent}'; \
         INSERT INTO command_batches (id, owner_id, username, command, timeout_seconds, concurrency, stop_on_failure, \
         is_cancelled, created_at, instance_id) VALUES (gen_random_uuid(), '{owner_id}', 'ada', 'true', 60, 1, false, \
         false, 0, '{silent}')"
    );
    connection.execute_unprepared(&batch).await.unwrap();

    let before = store.claim_batches(alive, &[]).await.unwrap();
    // It had no sessions.
    assert!(store.sweep_dead().await.unwrap().is_empty());
    let after = store.claim_batches(alive, &[]).await.unwrap();

    assert_eq!((before.len(), after.len()), (0, 1));
    assert_eq!(after[0].instance_id, Some(alive));
}

/// The text of a plan.
async fn plan(connection: &impl ConnectionTrait, query: &str) -> String {
    let explain = Statement::from_string(DbBackend::Postgres, format!("EXPLAIN {query}"));
    let lines = connection.query_all_raw(explain).await.unwrap();
    lines.iter().map(|line| line.try_get_by_index::<String>(0).unwrap() + "\n").collect()
}

/// The statements are those of the unit tests of the store's lists, which look at SQLite's plans.
#[actix_web::test]
async fn a_list_of_the_servers_with_a_tag_is_read_by_its_indexes() {
    let Some((storage, connection)) = postgres().await else { return };
    let owner_id = rows::owner(&storage.store().await).await;
    let servers = format!(
        "INSERT INTO servers (id, owner_id, search_text, name, host, port, description, session_epoch, series_dropped, \
         created_at, updated_at) SELECT gen_random_uuid(), '{owner_id}', 'server-' || i, 'server-' || i, 'h', 22, '', 0, 0, \
         1, 1 FROM generate_series(1, 5000) AS numbers (i)"
    );
    connection.execute_unprepared(&servers).await.unwrap();
    let tags = "INSERT INTO server_tags (server_id, tag, position) SELECT id, tag, 0 FROM servers, (VALUES ('db'), ('eu')) AS t (tag)";
    connection.execute_unprepared(tags).await.unwrap();
    connection.execute_unprepared("VACUUM ANALYZE servers, server_tags").await.unwrap();

    let tagged = format!("SELECT count(*) FROM server_tags WHERE owner_id = '{owner_id}' AND tag = 'db'");
    assert_eq!(number(&connection, &tagged).await, 5_000, "a trigger sets the owner");
    // Half of so small a table is read sooner as a whole.
    let planned = connection.begin().await.unwrap();
    planned.execute_unprepared("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off").await.unwrap();
    let count = plan(&planned, &tagged).await;
    planned.rollback().await.unwrap();
    assert!(count.contains("Index Only Scan using server_tags_by_owner"), "{count}");
    let page = format!(
        "SELECT * FROM servers WHERE owner_id = '{owner_id}' AND EXISTS (SELECT 1 FROM server_tags \
         WHERE server_tags.server_id = servers.id AND server_tags.tag = 'db') \
         ORDER BY substr(servers.search_text, 1, 128), servers.id LIMIT 100"
    );
    let page = plan(&connection, &page).await;
    assert!(page.contains("Index Scan using servers_by_name") && !page.contains("Sort"), "{page}");
}
