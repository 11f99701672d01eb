//! Who may do what: every operation and socket of openapi.json, asked by every kind of person, against one table. [`table`] says
//! what an operation needs, [`people`] what each person may do, and [`people::expected`] what follows.

mod bodies;
mod objects;
mod people;
mod scene;
mod table;

use std::collections::BTreeSet;

use serde_json::Value;
use signalbox::config::SecondFactorPolicy;

use people::{Outcome, Person, expected};
use scene::{Scene, Told};
use table::{Line, Needs};

#[actix_web::test]
async fn every_operation_answers_every_person_as_the_table_says() {
    ask_all(Scene::of_people().await).await;
}

#[actix_web::test]
async fn every_operation_answers_every_token_of_a_program_as_the_table_says() {
    ask_all(Scene::of_programs().await).await;
}

async fn ask_all(mut scene: Scene) {
    let mut deviations = Vec::new();

    for line in table::lines() {
        for person in scene.people.clone() {
            let outcome = expected(&line, &person);
            let told = scene.ask(&line, &person, outcome == Outcome::Done).await;
            if let Some(deviation) = deviation(&scene, &line, &person, outcome, &told) {
                deviations.push(format!("{} as {}: {deviation}", line.operation, person.name));
            }
        }
    }

    assert!(deviations.is_empty(), "{} deviations from the table:\n{}", deviations.len(), deviations.join("\n"));
}

#[actix_web::test]
async fn every_operation_is_closed_to_an_account_without_the_second_factor_that_it_must_have_but_those_that_make_one() {
    let mut scene = Scene::of_nobody().await;
    let mut calls = Vec::new();
    for line in table::lines() {
        calls.push((scene.path(&line, false).await, line));
    }
    let mut scene = scene.restarted(|config| config.second_factor = SecondFactorPolicy::All).await;
    let accounts = [scene.owner.clone(), scene.administrator.clone()];
    let mut deviations = Vec::new();

    for (path, line) in &calls {
        let is_open = line.needs == Needs::Nothing || people::OPEN_WITHOUT_FACTOR.contains(&line.operation);
        for account in &accounts {
            let fresh = if line.ends_session { Some(scene.service.sign_in(account).await.token) } else { None };
            let token = fresh.as_ref().unwrap_or(&account.token);
            let told = scene.call(line, path, Some(token)).await;
            let is_refused = told.status == 403 && (told.is_socket || told.code() == "second_factor_required");
            let is_known = line.needs == Needs::Nothing || told.status != 401;
            if is_refused == is_open || !is_known {
                deviations.push(format!("{}: {told}", line.operation));
            }
        }
    }

    assert!(deviations.is_empty(), "{} deviations:\n{}", deviations.len(), deviations.join("\n"));
}

/// What is wrong with an answer.
fn deviation(scene: &Scene, line: &Line, person: &Person, outcome: Outcome, told: &Told) -> Option<String> {
    let (status, code) = match outcome {
        Outcome::Unknown => (401, person.refusal),
        Outcome::Forbidden => (403, "forbidden"),
        Outcome::TokenNotAllowed => (403, "token_not_allowed"),
        Outcome::NotFound => (404, "not_found"),
        Outcome::Done => line.answer,
    };
    if told.status != status || !(code.is_empty() || told.is_socket || told.code() == code) {
        return Some(format!("{told}, expected {status} {code}"));
    }
    // A list has the server for those who may do this, and for nobody else.
    if let (Needs::Lists(action), Outcome::Done) = (line.needs, outcome)
        && told.text.contains(&scene.server_id.to_string()) != person.may(action)
    {
        return Some(format!("lists the server: {}, contrary to the table: {told}", !person.may(action)));
    }
    None
}

#[test]
fn the_table_has_a_line_for_every_operation_and_no_other() {
    let document = signalbox::http::openapi::document();
    let methods = |operations: &Value| operations.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let paths = document["paths"].as_object().unwrap().iter();
    let all: BTreeSet<String> = paths
        .flat_map(|(path, operations)| {
            methods(operations).into_iter().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();

    let lines: BTreeSet<String> = table::lines().iter().map(|line| line.operation.to_owned()).collect();

    let missing: Vec<&String> = all.difference(&lines).collect();
    assert!(missing.is_empty(), "say in tests/it/rights/table.rs who may do this: {missing:#?}");
    let stale: Vec<&String> = lines.difference(&all).collect();
    assert!(stale.is_empty(), "openapi.json has no such operation any more: {stale:#?}");
}
