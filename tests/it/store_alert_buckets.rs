//! The database counts alerts by the time of their ids, whatever adds, changes and removes them.

use std::collections::BTreeMap;

use migration::{Migrator, MigratorTrait};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, QueryResult, Statement, TransactionTrait,
};
use signalbox::audit::Actor;
use signalbox::store::{Alert, AlertAudience, AlertChange, NewUser, Registration, Store};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::rows::{alert, owner, server};
use crate::support::{Storage, eventually};

const DAY: i64 = 86_400_000;

/// An owner, a scope and its id, a bucket, a metric and a severity.
type Key = (Uuid, String, Uuid, String, String, String);

async fn rows(connection: &DatabaseConnection, query: &str) -> Vec<QueryResult> {
    connection.query_all_raw(Statement::from_string(connection.get_database_backend(), query)).await.unwrap()
}

/// The database's counts.
async fn counted(connection: &DatabaseConnection) -> BTreeMap<Key, i64> {
    let query = "SELECT owner_id, scope, scope_id, bucket, metric_type, severity, count FROM alert_buckets";
    let text = |row: &QueryResult, column| row.try_get_by_index::<String>(column).unwrap();
    let id = |row: &QueryResult, column| row.try_get_by_index::<Uuid>(column).unwrap();
    let count = |row: &QueryResult| {
        (
            (id(row, 0), text(row, 1), id(row, 2), text(row, 3), text(row, 4), text(row, 5)),
            row.try_get_by_index(6).unwrap(),
        )
    };
    rows(connection, query).await.iter().map(count).collect()
}

/// The counts found by reading each alert.
async fn found(connection: &DatabaseConnection) -> BTreeMap<Key, i64> {
    let mut found = BTreeMap::new();
    let query = "SELECT id, owner_id, server_id, threshold_id, metric_type, severity FROM alerts";
    for row in rows(connection, query).await {
        let id = |column| row.try_get_by_index::<Uuid>(column).unwrap();
        let text = |column| row.try_get_by_index::<String>(column).unwrap();
        let bucket = id(0).simple().to_string()[..5].to_owned();
        for (scope, scope_id) in [("owner", id(1)), ("server", id(2)), ("threshold", id(3))] {
            let key = (id(1), scope.to_owned(), scope_id, bucket.clone(), text(4), text(5));
            *found.entry(key).or_default() += 1;
        }
    }
    found
}

/// A separate connection: all others are the store's.
async fn alone(storage: &Storage) -> DatabaseConnection {
    let mut options = ConnectOptions::new(storage.direct_url());
    options.max_connections(1);
    Database::connect(options).await.unwrap()
}

async fn execute(connection: &impl ConnectionTrait, statement: &str) {
    connection.execute_unprepared(statement).await.unwrap();
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// An alert of any kind, of any time within a month; most are resolved.
fn any_alert(numbers: &mut Numbers, now: Timestamp, owner_id: Uuid, server_id: Uuid, thresholds: &[Uuid]) -> Alert {
    let at = now.plus_millis(-i64::try_from(numbers.below(30 * 86_400)).unwrap() * 1_000);
    let id = (u128::try_from(at.as_millis()).unwrap() << 80) | (Uuid::now_v7().as_u128() & ((1 << 80) - 1));
    let resolved_at = (numbers.below(4) > 0).then(|| at.plus_millis(60_000).into());
    Alert {
        id: Uuid::from_u128(id),
        metric_type: numbers.of(&["cpu", "disk", "load"]).to_owned(),
        severity: numbers.of(&["critical", "info", "warning"]).to_owned(),
        // One unresolved alert of a threshold and target.
        target: Some(Uuid::from_u128(id).to_string()),
        status: if resolved_at.is_some() { "resolved" } else { "active" }.to_owned(),
        triggered_at: at.into(),
        resolved_at,
        rearmed_at: resolved_at,
        ..alert(owner_id, server_id, numbers.of(thresholds))
    }
}

async fn open(store: &Store, alerts: impl IntoIterator<Item = Alert>) {
    let opened = alerts
        .into_iter()
        .map(|alert| AlertChange::Opened { alert: Box::new(alert), audience: AlertAudience::default() });
    store.change_alerts(&opened.collect::<Vec<_>>()).await.unwrap();
}

async fn second_owner(store: &Store) -> Uuid {
    let user = NewUser {
        id: Uuid::now_v7(),
        email: "grace@example.com".to_owned(),
        username: "grace".to_owned(),
        full_name: String::new(),
        password_hash: String::new(),
    };
    store.create_user(user, Registration::Open, "", None).await.unwrap().id
}

#[actix_web::test]
async fn counts_are_right_whatever_happens_to_alerts() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let connection = Database::connect(storage.direct_url()).await.unwrap();
    let owners = [owner(&store).await, second_owner(&store).await];
    let mut servers = Vec::new();
    for (n, owner_id) in owners.into_iter().cycle().take(5).enumerate() {
        servers.push((owner_id, server(&store, owner_id, &format!("web-{n}"), "a").await));
    }
    let thresholds: Vec<Uuid> = (0..4).map(|_| Uuid::now_v7()).collect();
    let (mut numbers, now) = (Numbers(20_261_126), Timestamp::now());

    for step in 0..120 {
        let at = numbers.below(servers.len());
        let (owner_id, server_id) = servers[at];
        match numbers.below(14) {
            0 => {
                store.forget_alerts(now.plus_millis(-DAY * numbers.of(&[10, 20, 25]))).await.unwrap();
            }
            1 => {
                assert!(store.delete_server(owner_id, server_id, Actor::command_line()).await.unwrap());
                servers[at] = (owner_id, server(&store, owner_id, &format!("db-{step}"), "a").await);
            }
            2 => execute(&connection, "DELETE FROM alerts WHERE severity = 'info' AND metric_type = 'cpu'").await,
            3 => execute(&connection, "UPDATE alerts SET severity = 'critical' WHERE metric_type = 'load'").await,
            // An id that is both is counted as either.
            4 => execute(&connection, "UPDATE alerts SET threshold_id = server_id WHERE severity = 'warning'").await,
            5 => {
                let transaction = connection.begin().await.unwrap();
                execute(&transaction, "DELETE FROM alerts WHERE severity = 'critical'").await;
                transaction.rollback().await.unwrap();
            }
            6 => {
                let transaction = connection.begin().await.unwrap();
                let nested = transaction.begin().await.unwrap();
                execute(&nested, "DELETE FROM alerts WHERE metric_type = 'disk'").await;
                nested.rollback().await.unwrap();
                execute(&transaction, "DELETE FROM alerts WHERE severity = 'critical' AND metric_type = 'load'").await;
                execute(&transaction, "UPDATE alerts SET metric_type = 'load' WHERE severity = 'critical'").await;
                transaction.commit().await.unwrap();
            }
            some => {
                let alerts = (0..some).map(|_| any_alert(&mut numbers, now, owner_id, server_id, &thresholds));
                open(&store, alerts.collect::<Vec<_>>()).await;
            }
        }
        assert_eq!(counted(&connection).await, found(&connection).await, "after step {step}");
    }
    assert!(!counted(&connection).await.is_empty());

    execute(&connection, "DELETE FROM users WHERE username = 'grace'").await;
    let left = counted(&connection).await;
    assert!(left.keys().all(|key| key.0 == owners[0]));
    assert_eq!(left, found(&connection).await);
    execute(&connection, "DELETE FROM alerts").await;
    assert_eq!(counted(&connection).await, BTreeMap::new());
    connection.close().await.unwrap();
    store.close().await;
}

#[actix_web::test]
async fn those_who_write_alerts_at_once_neither_miscount_nor_wait_in_a_circle() {
    const WRITERS: usize = 6;
    let storage = Storage::fresh().await;
    let stores = [storage.store().await, storage.store().await];
    let owner_id = owner(&stores[0]).await;
    let mut servers = Vec::new();
    for n in 0..WRITERS {
        servers.push(server(&stores[0], owner_id, &format!("web-{n}"), "a").await);
    }
    let threshold_id = Uuid::now_v7();
    let kinds = [("cpu", "warning"), ("disk", "critical"), ("load", "info"), ("ram", "warning"), ("cpu", "critical")];

    // Of the same days and kinds, each in another order.
    let writers = servers.iter().enumerate().map(|(n, server_id)| {
        let store = &stores[n % 2];
        async move {
            for round in 0..20 {
                let alerts = (0..kinds.len()).map(|k| {
                    let (metric_type, severity) = kinds[if n % 2 == 0 { k } else { kinds.len() - 1 - k }];
                    let (metric_type, severity) = (metric_type.to_owned(), severity.to_owned());
                    let target = Some(format!("{round}-{k}"));
                    Alert { metric_type, severity, target, ..alert(owner_id, *server_id, threshold_id) }
                });
                open(store, alerts).await;
            }
            if n % 3 == 0 {
                assert!(store.delete_server(owner_id, *server_id, Actor::command_line()).await.unwrap());
            }
        }
    });
    futures_util::future::join_all(writers).await;

    for store in stores {
        store.close().await;
    }
    let connection = alone(&storage).await;
    let counted = counted(&connection).await;
    assert_eq!(counted, found(&connection).await);
    assert_eq!(counted.iter().filter(|(key, _)| key.1 == "owner").map(|(_, count)| count).sum::<i64>(), 4 * 20 * 5);
    if !storage.config().is_embedded() {
        // PostgreSQL counts a connection's deadlocks when it has closed.
        let others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' \
                      AND pid <> pg_backend_pid()";
        eventually("the stores are gone", async || rows(&connection, others).await.is_empty().then_some(())).await;
        let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        assert_eq!(rows(&connection, deadlocks).await[0].try_get_by_index::<i64>(0).unwrap(), 0);
    }
    connection.close().await.unwrap();
}

#[actix_web::test]
async fn alerts_that_were_there_before_are_counted_too() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let owner_id = owner(&store).await;
    let servers = [server(&store, owner_id, "web-1", "a").await, server(&store, owner_id, "web-2", "a").await];
    let (mut numbers, now, thresholds) = (Numbers(7), Timestamp::now(), [Uuid::now_v7(), Uuid::now_v7()]);
    for server_id in servers {
        let alerts = (0..60).map(|_| any_alert(&mut numbers, now, owner_id, server_id, &thresholds));
        open(&store, alerts.collect::<Vec<_>>()).await;
    }
    store.close().await;
    let connection = Database::connect(storage.direct_url()).await.unwrap();
    let before = counted(&connection).await;
    let all = Migrator::migrations();
    let since =
        all.iter().rev().take_while(|migration| migration.name() != "m20261126_000011_alert_buckets").count() + 1;

    Migrator::down(&connection, Some(since.try_into().unwrap())).await.unwrap();
    // Nothing counts any more.
    execute(&connection, "DELETE FROM alerts WHERE severity = 'critical'").await;
    Migrator::up(&connection, None).await.unwrap();

    let after = counted(&connection).await;
    assert_eq!(after, found(&connection).await);
    assert_eq!(after, before.into_iter().filter(|(key, _)| key.5 != "critical").collect());
    execute(&connection, "DELETE FROM alerts WHERE severity = 'warning'").await;
    assert_eq!(counted(&connection).await, found(&connection).await);
    connection.close().await.unwrap();
}
