//! The contents of the service's database.

use std::path::Path;

use crate::report::megabytes;
use crate::sqlite::{largest_database, rows};
use crate::store::Note;

/// The contents of the file.
#[derive(Debug, Default)]
pub struct Tables {
    /// Bytes of the compressed blocks of raw samples; none where there are no such blocks.
    pub raw_bytes: Option<u64>,
    pub notes: Vec<Note>,
}

/// A tree below this part of the file is not worth a row.
const SHOWN_PART: f64 = 0.002;

pub async fn look(folder: &Path) -> anyhow::Result<Tables> {
    let file = largest_database(folder)?;
    let mut tables = Tables::default();
    let trees =
        rows(&file, "SELECT name, pgsize, payload FROM dbstat WHERE aggregate = TRUE ORDER BY pgsize DESC").await?;
    let total: f64 = trees.iter().filter_map(|row| row.get(1)?.parse::<f64>().ok()).sum();
    for row in &trees {
        let [name, pages, payload] = row.as_slice() else { continue };
        let (pages, payload): (u64, u64) = (pages.parse()?, payload.parse()?);
        if pages as f64 >= total * SHOWN_PART {
            let sizes = format!("{:.2} MB, {:.2} MB of it content", megabytes(pages), megabytes(payload));
            tables.notes.push((format!("table or index {name}"), sizes));
        }
    }
    if !trees.iter().any(|row| row.first().is_some_and(|name| name == "history_blocks")) {
        return Ok(tables);
    }
    let blocks = "SELECT tier, count(*), sum(CASE part WHEN 0 THEN rows ELSE 0 END), sum(length(data)) FROM history_blocks \
                  GROUP BY tier ORDER BY tier";
    for row in rows(&file, blocks).await? {
        let [tier, blocks, count, bytes] = row.as_slice() else { continue };
        let bytes: u64 = bytes.parse()?;
        if tier == "0" {
            tables.raw_bytes = Some(bytes);
        }
        let sizes = format!("{blocks} blocks, {count} counted in them, {:.2} MB", megabytes(bytes));
        tables.notes.push((format!("blocks of tier {tier}"), sizes));
    }
    for table in ["history_pieces", "history_journal"] {
        let left = rows(&file, &format!("SELECT count(*) FROM {table}")).await?;
        let left = left.first().and_then(|row| row.first()).cloned().unwrap_or_default();
        tables.notes.push((format!("rows left in {table}"), left));
    }
    Ok(tables)
}
