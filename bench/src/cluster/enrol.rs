//! Thousands of servers and keys, inserted directly into the database: over REST each takes two requests and two audit entries,
//! one after the other.

use std::fmt::Write as _;

use uuid::Uuid;

use super::Postgres;
use crate::data::server_name;
use crate::fixture::Enrolled;

/// Creates servers of the only user. No instance may run, because it would not learn of them.
pub async fn enrol(postgres: &Postgres, servers: usize) -> anyhow::Result<Vec<Enrolled>> {
    let mut fleet = Vec::with_capacity(servers);
    let (mut server_rows, mut key_rows) = (Vec::new(), Vec::new());
    for number in 0..servers {
        let (server_id, key_id, name) = (Uuid::now_v7(), Uuid::now_v7(), server_name(number));
        let prefix = format!("sbk_{:016x}", fastrand::u64(..));
        let key = format!("{prefix}_{}", random_text());
        server_rows.push(format!("('{server_id}'::uuid, '{name}')"));
        key_rows.push(format!("('{key_id}'::uuid, '{server_id}'::uuid, '{prefix}', '{key}')"));
        fleet.push(Enrolled { server_id, key: key.into() });
    }
    if !fleet.is_empty() {
        postgres.rows(&script(&server_rows, &key_rows)?).await?;
    }
    Ok(fleet)
}

fn script(servers: &[String], keys: &[String]) -> anyhow::Result<String> {
    const NOW: &str = "(extract(epoch FROM now()) * 1000)::bigint";

    let mut script = String::from("BEGIN;\n");
    writeln!(
        script,
        "INSERT INTO servers (id, owner_id, search_text, name, host, port, description, session_epoch, created_at, \
         updated_at) SELECT new.id, users.id, new.name || E'\\n127.0.0.1\\n', new.name, '127.0.0.1', 22, '', 0, {NOW}, \
         {NOW} FROM users, (VALUES\n{}) AS new (id, name);",
        servers.join(",\n")
    )?;
    writeln!(
        script,
        "INSERT INTO api_keys (id, server_id, name, prefix, digest, created_at) SELECT new.id, new.server_id, 'bench', \
         new.prefix, sha256(convert_to(new.key, 'UTF8')), {NOW} FROM (VALUES\n{}) AS new (id, server_id, prefix, key);",
        keys.join(",\n")
    )?;
    script.push_str("COMMIT;\nANALYZE servers;\nANALYZE api_keys;\n");
    Ok(script)
}

/// As long as a key's secret part. It opens a throw-away service on loopback.
fn random_text() -> String {
    (0..43).map(|_| fastrand::alphanumeric()).collect()
}
