//! Rows of any table: read in pages by their key, written, and hashed.

use sea_orm::{ConnectionTrait, DatabaseBackend, DbErr, QueryResult, Statement, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::tables::{Kind, Table};

/// One column of a row, the same whichever database it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Field {
    Uuid(Option<Uuid>),
    Text(Option<String>),
    Small(Option<i16>),
    Int(Option<i32>),
    Big(Option<i64>),
    Bool(Option<bool>),
    Double(Option<f64>),
    Bytes(Option<Vec<u8>>),
}

pub(super) type Row = Vec<Field>;

impl Field {
    fn read(row: &QueryResult, place: usize, kind: Kind) -> Result<Self, DbErr> {
        Ok(match kind {
            Kind::Uuid => Self::Uuid(row.try_get_by_index(place)?),
            Kind::Text => Self::Text(row.try_get_by_index(place)?),
            Kind::Small => Self::Small(row.try_get_by_index(place)?),
            Kind::Int => Self::Int(row.try_get_by_index(place)?),
            Kind::Big => Self::Big(row.try_get_by_index(place)?),
            Kind::Bool => Self::Bool(row.try_get_by_index(place)?),
            Kind::Double => Self::Double(row.try_get_by_index(place)?),
            Kind::Bytes => Self::Bytes(row.try_get_by_index(place)?),
        })
    }

    fn value(&self) -> Value {
        match self {
            Self::Uuid(id) => Value::from(*id),
            Self::Text(text) => Value::from(text.clone()),
            Self::Small(number) => Value::from(*number),
            Self::Int(number) => Value::from(*number),
            Self::Big(number) => Value::from(*number),
            Self::Bool(is_so) => Value::from(*is_so),
            Self::Double(number) => Value::from(*number),
            Self::Bytes(bytes) => Value::from(bytes.clone()),
        }
    }

    /// The number of an integer.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Small(number) => number.map(i64::from),
            Self::Int(number) => number.map(i64::from),
            Self::Big(number) => *number,
            Self::Uuid(_) | Self::Text(_) | Self::Bool(_) | Self::Double(_) | Self::Bytes(_) => None,
        }
    }

    /// A column of a key as JSON, from which [`Field::parse`] makes it again. No key has one of the other kinds.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Uuid(id) => id.map(|id| id.to_string()).into(),
            Self::Text(text) => text.clone().into(),
            Self::Small(_) | Self::Int(_) | Self::Big(_) => self.integer().into(),
            Self::Bool(_) | Self::Double(_) | Self::Bytes(_) => serde_json::Value::Null,
        }
    }

    /// The column of a key that some JSON stands for.
    pub fn parse(json: &serde_json::Value, kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Uuid => Self::Uuid(Some(json.as_str()?.parse().ok()?)),
            Kind::Text => Self::Text(Some(json.as_str()?.to_owned())),
            Kind::Small => Self::Small(Some(json.as_i64()?.try_into().ok()?)),
            Kind::Int => Self::Int(Some(json.as_i64()?.try_into().ok()?)),
            Kind::Big => Self::Big(Some(json.as_i64()?)),
            Kind::Bool | Kind::Double | Kind::Bytes => return None,
        })
    }

    /// Adds the length of the field and its bytes, so that no byte can move from one field to the next. A field that is
    /// null has a length that no other has.
    fn hash(&self, hasher: &mut Sha256) {
        let mut add = |bytes: Option<&[u8]>| {
            hasher.update(bytes.map_or(u64::MAX, |bytes| bytes.len() as u64).to_be_bytes());
            hasher.update(bytes.unwrap_or_default());
        };
        match self {
            Self::Uuid(id) => add(id.as_ref().map(|id| id.as_bytes().as_slice())),
            Self::Text(text) => add(text.as_ref().map(String::as_bytes)),
            Self::Small(_) | Self::Int(_) | Self::Big(_) => {
                add(self.integer().map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
            }
            Self::Bool(is_so) => add(is_so.map(|yes| [u8::from(yes)]).as_ref().map(<[u8; 1]>::as_slice)),
            Self::Double(number) => {
                add(number.map(|number| number.to_bits().to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice));
            }
            Self::Bytes(bytes) => add(bytes.as_deref()),
        }
    }
}

/// How many rows a table has, and the sum of their hashes: the same in whatever order they are read. Text is sorted
/// differently by each database, so an order of the key is not the same on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum {
    pub rows: u64,
    lanes: [u64; 4],
}

impl Sum {
    fn add(&mut self, row: &[Field]) {
        let mut hasher = Sha256::new();
        row.iter().for_each(|field| field.hash(&mut hasher));
        let hash: [u8; 32] = hasher.finalize().into();
        let (words, _) = hash.as_chunks::<8>();
        for (lane, word) in self.lanes.iter_mut().zip(words) {
            *lane = lane.wrapping_add(u64::from_be_bytes(*word));
        }
        self.rows += 1;
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.lanes.iter().flat_map(|lane| lane.to_be_bytes()).collect()
    }
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// The next rows behind a key, in the order that this database gives the key: one batch at most.
pub(super) async fn page(
    connection: &impl ConnectionTrait,
    table: &Table,
    after: Option<&[Field]>,
) -> Result<Vec<Row>, DbErr> {
    let columns = quoted(table.columns.iter().map(|column| column.name));
    let key = quoted(table.key_columns().map(|column| column.name));
    let last = after.unwrap_or_default();
    let places: Vec<String> = (1..=last.len()).map(|number| format!("${number}")).collect();
    // Compared as a whole, which both databases look up in the index of the key.
    let behind = if last.is_empty() { String::new() } else { format!("WHERE ({key}) > ({}) ", places.join(", ")) };
    let query = format!("SELECT {columns} FROM {} {behind}ORDER BY {key} LIMIT {}", table.name, table.batch);
    let values = last.iter().map(Field::value);
    let statement = Statement::from_sql_and_values(connection.get_database_backend(), query, values);
    let rows = connection.query_all_raw(statement).await?;
    let read = |row: &QueryResult| {
        let fields = table.columns.iter().enumerate();
        fields.map(|(place, column)| Field::read(row, place, column.kind)).collect::<Result<Row, DbErr>>()
    };
    rows.iter().map(read).collect()
}

/// Writes rows, of which none may be there.
pub(super) async fn insert(connection: &impl ConnectionTrait, table: &Table, rows: &[Row]) -> Result<(), DbErr> {
    let columns = quoted(table.columns.iter().map(|column| column.name));
    let width = table.columns.len();
    let places = |row: usize| {
        let places = (1..=width).map(|column| format!("${}", row * width + column));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let all = (0..rows.len()).map(places).collect::<Vec<_>>().join(", ");
    let insert = format!("INSERT INTO {} ({columns}) VALUES {all}", table.name);
    let values: Vec<Value> = rows.iter().flatten().map(Field::value).collect();
    let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, insert, values);
    connection.execute_raw(statement).await.map(|_| ())
}

/// The values of a row's key.
pub(super) fn key_of(table: &Table, row: &[Field]) -> Vec<Field> {
    table.key.iter().filter_map(|place| row.get(*place)).cloned().collect()
}

/// Reads a whole table, a page at a time.
pub(super) async fn sum(connection: &impl ConnectionTrait, table: &Table) -> Result<Sum, DbErr> {
    let mut sum = Sum::default();
    let mut after: Option<Vec<Field>> = None;
    loop {
        let rows = page(connection, table, after.as_deref()).await?;
        rows.iter().for_each(|row| sum.add(row));
        match rows.last() {
            Some(last) if rows.len() == table.batch => after = Some(key_of(table, last)),
            _ => return Ok(sum),
        }
    }
}

/// How many rows a table has.
pub(super) async fn count(connection: &impl ConnectionTrait, table: &Table) -> Result<u64, DbErr> {
    let query = format!("SELECT COUNT(*) FROM {}", table.name);
    let row = connection.query_one_raw(Statement::from_string(connection.get_database_backend(), query)).await?;
    let count: i64 = row.map_or(Ok(0), |row| row.try_get_by_index(0))?;
    Ok(count.unsigned_abs())
}

/// The first row that has a NUL character in a text, and the name of its column.
pub(super) fn nul<'a>(table: &Table, rows: &'a [Row]) -> Option<(&'a Row, &'static str)> {
    fn has_nul(field: &Field) -> bool {
        matches!(field, Field::Text(Some(text)) if text.contains('\0'))
    }
    rows.iter().find_map(|row| {
        let (_, column) = row.iter().zip(&table.columns).find(|(field, _)| has_nul(field))?;
        Some((row, column.name))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::*;

    fn sum_of(rows: &[Row]) -> Sum {
        let mut sum = Sum::default();
        rows.iter().for_each(|row| sum.add(row));
        sum
    }

    fn text(text: &str) -> Field {
        Field::Text(Some(text.to_owned()))
    }

    #[test]
    fn a_sum_is_the_same_in_any_order_and_another_for_other_rows() {
        let (one, two) = (vec![text("a"), text("bc")], vec![text("ab"), text("c")]);

        let both = sum_of(&[one.clone(), two.clone()]);

        assert_eq!(both, sum_of(&[two.clone(), one.clone()]));
        assert_ne!(sum_of(std::slice::from_ref(&one)), sum_of(&[two]));
        assert_ne!(both, sum_of(&[one.clone(), one]));
        assert_ne!(sum_of(&[vec![text("")]]), sum_of(&[vec![Field::Text(None)]]));
    }

    #[test]
    fn a_number_has_one_hash_whatever_its_width() {
        assert_eq!(sum_of(&[vec![Field::Small(Some(-3))]]), sum_of(&[vec![Field::Big(Some(-3))]]));
        assert_ne!(sum_of(&[vec![Field::Double(Some(0.0))]]), sum_of(&[vec![Field::Double(Some(-0.0))]]));
    }

    #[test]
    fn a_key_comes_back_from_its_json() {
        let key = [Field::Uuid(Some(Uuid::now_v7())), text("ß\"\\"), Field::Small(Some(4)), Field::Big(Some(i64::MAX))];
        let kinds = [Kind::Uuid, Kind::Text, Kind::Small, Kind::Big];

        let back = key.iter().zip(kinds).map(|(field, kind)| Field::parse(&field.to_json(), kind));

        assert_eq!(back.collect::<Option<Vec<_>>>(), Some(key.to_vec()));
        assert_eq!(Field::parse(&serde_json::json!(70_000), Kind::Small), None);
    }

    #[test]
    fn a_text_with_nul_is_found() {
        let tables = tables::all();
        let claims = tables.iter().find(|table| table.name == "claims").unwrap();
        let row = |name: &str| vec![text(name), Field::Uuid(Some(Uuid::nil()))];

        assert_eq!(nul(claims, &[row("fine")]), None);
        assert_eq!(nul(claims, &[row("fine"), row("a\0b")]), Some((&row("a\0b"), "name")));
    }
}
