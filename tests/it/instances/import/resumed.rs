//! An import that ends before its end.

use sea_orm::ConnectionTrait;
use signalbox::store::import::{Import, ImportError, Standing};

use super::{import, number, serve, session, source_with_events};
use crate::support::command_line::{Launched, run, signalbox};
use crate::support::{Storage, eventually};

const EVENTS: u32 = 5_000;

/// In the fourth batch of a thousand.
const STOPS_AT: u32 = 3_500;

const MOVED: &str = "SELECT row_count FROM import_progress WHERE table_name = 'server_events'";

/// Any number will do.
const LOCK: i64 = 0x7374_6f70;

/// Has the target do some work when the event is written that stops an import.
async fn stop_with(target: &Storage, work: &str) {
    let function =
        format!("CREATE FUNCTION test_stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {work} RETURN NEW; END $$");
    let trigger = format!(
        "CREATE TRIGGER test_stop BEFORE INSERT ON server_events FOR EACH ROW WHEN (NEW.at = {STOPS_AT}) \
         EXECUTE FUNCTION test_stop()"
    );
    target.execute(&[function.as_str(), trigger.as_str()]).await;
}

async fn stop_no_more(target: &Storage) {
    target.execute(&["DROP FUNCTION test_stop() CASCADE"]).await;
}

/// A source, and a target that has three thousand of its events.
async fn interrupted() -> (Storage, Storage) {
    let (source, target) = (source_with_events(EVENTS).await, Storage::fresh().await);
    stop_with(&target, "RAISE EXCEPTION 'stopped by a test';").await;

    let outcome = run(import(&source, &target)).await;

    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("stopped by a test"), "{outcome:?}");
    assert_eq!(number(&target, MOVED).await, Some(3_000));
    stop_no_more(&target).await;
    (source, target)
}

#[actix_web::test]
async fn an_import_that_was_killed_continues_where_it_was() {
    let (source, target) = (source_with_events(EVENTS).await, Storage::fresh().await);
    stop_with(&target, &format!("PERFORM pg_advisory_xact_lock({LOCK});")).await;
    let holder = session(&target).await;
    holder.execute_unprepared(&format!("SELECT pg_advisory_lock({LOCK})")).await.unwrap();
    let waiting = format!(
        "SELECT 1::bigint FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = {LOCK} \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );

    let program = Launched::start(import(&source, &target));
    eventually("the fourth batch waits", async || {
        let is_there = number(&target, MOVED).await == Some(3_000) && number(&target, &waiting).await.is_some();
        is_there.then_some(())
    })
    .await;
    program.signal("KILL");
    program.outcome().await;
    holder.close().await.unwrap();

    // What the killed one began is undone, and nobody else uses a part of a service.
    stop_no_more(&target).await;
    assert_eq!(number(&target, MOVED).await, Some(3_000));
    let beside = target.beside();
    run(serve(&target, &beside)).await.assert_refused("unfinished import");

    let outcome = run(import(&source, &target)).await;

    let printed = outcome.printed();
    assert!(printed.contains("moved and verified"), "{printed}");
    assert!(outcome.stderr.contains("it continues"), "{outcome:?}");
    assert_eq!(number(&target, "SELECT COUNT(*) FROM server_events").await, Some(i64::from(EVENTS)));
    assert!(!target.store().await.has_unfinished_import().await.unwrap());
}

#[actix_web::test]
async fn a_run_that_another_one_has_replaced_writes_no_more() {
    let (source, target) = (source_with_events(10).await, Storage::fresh().await);
    let another = async || Import::between(source.store().await, target.store().await).await.unwrap();
    let (first, second) = (another().await, another().await);
    assert_eq!(first.begin().await.unwrap(), Standing::Empty);
    assert_eq!(second.begin().await.unwrap(), Standing::Unfinished);

    let displaced = first.move_rows().await;

    assert!(matches!(displaced, Err(ImportError::Displaced)), "{displaced:?}");
    second.move_rows().await.unwrap();
    assert_eq!(second.verify().await.unwrap().len(), 47);
    second.finish().await.unwrap();
    assert!(!target.store().await.has_unfinished_import().await.unwrap());
}

#[actix_web::test]
async fn a_part_of_a_service_is_not_changed_by_other_commands() {
    let (_source, target) = interrupted().await;
    let mut command = signalbox(&["user", "reset-password", "ada"]);
    target.named_to(&mut command);

    run(command).await.assert_refused("unfinished import");
}

#[actix_web::test]
async fn a_source_that_has_changed_since_is_refused() {
    let (source, target) = interrupted().await;
    source.execute(&["UPDATE users SET full_name = 'Another'"]).await;

    let outcome = run(import(&source, &target)).await;

    outcome.assert_refused("unfinished import of another source");
}

#[actix_web::test]
async fn a_row_that_is_another_in_the_target_is_found() {
    for change in [
        "UPDATE server_events SET detail = '{\"by\":\"a test\"}' WHERE at = 10",
        "DELETE FROM server_events WHERE at = 3000",
        "UPDATE server_events SET at = CASE at WHEN 1 THEN 2 ELSE 1 END WHERE at IN (1, 2)",
    ] {
        let (source, target) = interrupted().await;
        target.execute(&[change]).await;

        let outcome = run(import(&source, &target)).await;

        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{change}: {outcome:?}");
        assert!(outcome.stderr.contains("table server_events differs: 5000 rows"), "{change}: {outcome:?}");
        assert!(target.store().await.has_unfinished_import().await.unwrap(), "{change}");
    }
}
