//! What an import does not begin, and what it says of it.

use super::{import, number, source_with_events};
use crate::support::Storage;
use crate::support::command_line::{run, signalbox};
use crate::support::process::ServiceProcess;
use crate::support::rows::owner;

#[actix_web::test]
async fn a_check_says_what_would_be_moved_and_changes_nothing() {
    let (source, target) = (source_with_events(3).await, Storage::empty().await);
    // A check does not need the source for itself.
    let service = ServiceProcess::start(source.path()).await;
    let mut command = import(&source, &target);
    command.arg("--check");

    let outcome = run(command).await;

    let printed = outcome.printed();
    let line = |name: &str| printed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{printed}"));
    assert!(printed.starts_with(&format!("from {}", source.path().display())), "{printed}");
    assert!(line("to ").ends_with("which is empty"), "{printed}");
    assert!(line("server_events").ends_with(" 3 rows") && line("users").ends_with(" 1 row"), "{printed}");
    assert!(printed.ends_with("nothing was changed\n"), "{printed}");
    assert_eq!(number(&target, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'").await, Some(0));
    assert_eq!(service.terminate().await.code, Some(0));
}

#[actix_web::test]
async fn a_target_with_data_is_refused_and_stays_as_it_is() {
    let (source, target) = (source_with_events(3).await, Storage::fresh().await);
    owner(&target.store().await).await;

    run(import(&source, &target)).await.assert_refused("not empty: its table users has rows");

    assert_eq!(number(&target, "SELECT COUNT(*) FROM server_events").await, Some(0));
    assert!(!target.store().await.has_unfinished_import().await.unwrap());
}

#[actix_web::test]
async fn no_service_may_run_on_either_side() {
    let (source, target) = (source_with_events(3).await, Storage::fresh().await);

    let on_source = ServiceProcess::start(source.path()).await;
    run(import(&source, &target)).await.assert_refused("in use by another signalbox, process");
    assert_eq!(on_source.terminate().await.code, Some(0));
    let beside = target.beside();
    let on_target = ServiceProcess::start_on(&beside, "127.0.0.1:0").await;
    run(import(&source, &target)).await.assert_refused("a service uses the database");
    assert_eq!(on_target.terminate().await.code, Some(0));

    assert!(run(import(&source, &target)).await.printed().contains("moved and verified"));
}

#[actix_web::test]
async fn what_is_wrong_with_a_source_is_said() {
    let target = Storage::fresh().await;
    let last = "(SELECT MAX(version) FROM seaql_migrations)";
    for (change, said) in [
        (format!("DELETE FROM seaql_migrations WHERE version = {last}"), "older version"),
        ("INSERT INTO seaql_migrations VALUES ('m29990101_000001_new', 0)".to_owned(), "m29990101_000001_new"),
    ] {
        let source = source_with_events(3).await;
        source.execute(&[change.as_str()]).await;
        run(import(&source, &target)).await.assert_refused(said);
    }
    let missing = source_with_events(3).await;
    std::fs::remove_file(missing.path().join("signalbox.db")).unwrap();
    run(import(&missing, &target)).await.assert_refused("there is no database at");
}

#[actix_web::test]
async fn a_text_that_postgresql_cannot_store_is_named() {
    let (source, target) = (source_with_events(3).await, Storage::fresh().await);
    source.execute(&["UPDATE users SET full_name = 'a' || char(0) || 'b'"]).await;

    let outcome = run(import(&source, &target)).await;

    outcome.assert_refused("column full_name has a NUL character");
}

#[actix_web::test]
async fn a_database_of_any_name_is_moved() {
    let (source, target) = (source_with_events(3).await, Storage::fresh().await);
    let elsewhere = source.path().join("my box.sqlite");
    std::fs::rename(source.path().join("signalbox.db"), &elsewhere).unwrap();
    let mut command = signalbox(&["import", "sqlite-to-postgres", "--from"]);
    command.arg(&elsewhere);
    target.named_to(&mut command);

    assert!(run(command).await.printed().contains("moved and verified"));

    assert_eq!(number(&target, "SELECT COUNT(*) FROM server_events").await, Some(3));
}

#[actix_web::test]
async fn a_target_that_cannot_be_used_is_named_without_its_password() {
    let source = source_with_events(3).await;
    for (url, said) in [
        ("postgres://ada:very-secret@127.0.0.1:1/box", "127.0.0.1:1"),
        ("sqlite:///srv/very-secret.db", "the target is no PostgreSQL database"),
        ("mysql://ada:very-secret@db/box", "must begin with postgres://"),
    ] {
        let mut command = signalbox(&["import", "sqlite-to-postgres", "--data-dir"]);
        command.arg(source.path()).env("SIGNALBOX_DATABASE_URL", url);

        let outcome = run(command).await;

        outcome.assert_refused(said);
        assert!(!outcome.stderr.contains("very-secret"), "{outcome:?}");
    }
}
