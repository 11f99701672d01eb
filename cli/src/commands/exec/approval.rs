//! A command that waits at the service for the signatures of others.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::batch::{self, Choice};
use super::{Order, not_started};
use crate::api::parsed;
use crate::api::types::{Approval, Server};
use crate::commands::Call;
use crate::commands::approvals::{WAITS, short};
use crate::error::Failure;
use crate::output;
use crate::signing::options::Servers;

/// On one server.
pub async fn one(call: &Call, wanted: &str, order: &Order) -> Result<(), Failure> {
    let server = call.api.server(wanted).await?;
    ask(call, &Servers { servers: std::slice::from_ref(&server), typed: Some(wanted) }, order, order.body()).await
}

/// On all servers with a tag.
pub async fn many(call: &Call, choice: &Choice, order: &Order) -> Result<(), Failure> {
    let servers = batch::servers_of(call, &choice.tag).await?;
    let mut body = order.body();
    body.extend(choice.body());
    ask(call, &Servers { servers: &servers, typed: None }, order, body).await
}

async fn ask(
    call: &Call,
    servers: &Servers<'_>,
    order: &Order,
    mut body: BTreeMap<&'static str, Value>,
) -> Result<(), Failure> {
    let signed = order.signing.sign(servers, order.subject()).await?;
    let ids: Vec<Uuid> = servers.servers.iter().map(|server: &Server| server.id).collect();
    body.insert("server_ids", json!(ids));
    body.extend(signed.value.map(|value| ("signed", value)));
    let asked = call.api.post("/commands/approvals", &body).await;
    let value = asked.map_err(|failure| not_started(failure, "command"))?;
    let approval: Approval = parsed(value.clone())?;
    if let Some(id) = approval.batch_id {
        // There were enough signatures.
        let started = call.api.get(&format!("/commands/batches/{id}"), &[]).await;
        let started = started.map_err(|failure| batch::continues(failure, id))?;
        let (results, mut interrupts) = batch::follow(call, started).await?;
        let verdict = batch::verdict(&results);
        if verdict.is_err() {
            // For the service there were; the agents may know better.
            let path = format!("/commands/approvals/{}", approval.id);
            let now = interrupts.unless_pressed(call.api.get(&path, &[])).await;
            let now = now.map_err(|interrupted| batch::ended(interrupted, &results))?;
            if let Ok(now) = now.and_then(parsed::<Approval>)
                && now.status == WAITS
            {
                output::complain(&format!("the command {}", now.words()));
            }
        }
        return verdict;
    }
    let how = format!("signalboxctl approvals sign {} --sign KEYFILE", short(approval.id));
    call.out.done(&format!("The command {}. Others sign with:\n  {how}", approval.words()), &value)
}
