//! Elements that the stored formats share: numbers and texts of variable length, schemas, entries and open series. A count
//! precedes each list, so that a reader can skip what it does not know.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use super::metric::{Field, Kind, Scale, Series};
use super::shape::{Entry, List, Schema};

/// Why bytes are malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// The most fields or lists of a schema: many times what a sample has.
const MAX_FIELDS: usize = 256;

/// Collects bytes.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Writes seven bits per byte, the lowest first; the eighth bit says that another byte follows.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Writes a signed number, so that small ones of either sign take few bytes.
    pub fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    /// Writes a text after its length.
    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Writes a schema.
    pub fn schema(&mut self, schema: &Schema) {
        self.fields(&schema.machine);
        self.fields(&schema.core);
        self.number(schema.lists.len() as u64);
        for (list, fields) in &schema.lists {
            self.number(list.0.into());
            self.fields(fields);
        }
    }

    fn fields(&mut self, fields: &[Field]) {
        self.number(fields.len() as u64);
        for field in fields {
            self.number(field.number.into());
            // Both in one number, which mostly takes a byte or two.
            self.number(field.scale.number() << 2 | field.kind.number());
        }
    }

    /// Writes an entry.
    pub fn entry(&mut self, entry: &Entry) {
        self.number(entry.list.0.into());
        self.text(&entry.name);
        self.text(&entry.id);
        self.number(entry.nth.into());
    }

    /// Writes an open series.
    pub fn series(&mut self, series: &Series) {
        self.text(&series.name);
        self.text(&series.unit);
        self.number(series.kind.number());
        match &series.target {
            None => self.number(0),
            Some(target) => {
                self.number(1);
                self.text(target);
            }
        }
    }
}

/// Reads what a [`Writer`] wrote, and never beyond its end.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Reads a number of variable length.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is too long"))
    }

    /// Reads a signed number.
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A number of a narrower type.
    pub fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.number()?).map_err(|_| Malformed("a number is too long"))
    }

    /// Reads a count of things that each take some memory.
    pub fn count(&mut self, most: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count > most { Err(Malformed("there is too much of something")) } else { Ok(count) }
    }

    /// Reads a text.
    pub fn text(&mut self) -> Result<String, Malformed> {
        let length = self.count(self.0.len())?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Malformed("a text is none"))
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.0.split_first().ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*byte)
    }

    /// Reads `length` bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a schema, shared with all that have this build's.
    pub fn schema(&mut self) -> Result<Arc<Schema>, Malformed> {
        let (machine, core) = (self.fields()?, self.fields()?);
        let mut lists: Vec<(List, Vec<Field>)> = Vec::new();
        for _ in 0..self.count(MAX_FIELDS)? {
            let list = List(self.narrow()?);
            if lists.iter().any(|(known, _)| *known == list) {
                return Err(Malformed("a list is there twice"));
            }
            lists.push((list, self.fields()?));
        }
        Ok(Schema { machine, core, lists }.shared())
    }

    fn fields(&mut self) -> Result<Vec<Field>, Malformed> {
        let mut fields: Vec<Field> = Vec::new();
        for _ in 0..self.count(MAX_FIELDS)? {
            let number = self.narrow()?;
            let packed = self.number()?;
            let kind = Kind::of(packed & 3).ok_or(Malformed("an unknown kind of metric"))?;
            let scale = Scale::of(packed >> 2).ok_or(Malformed("an unknown scale"))?;
            let field = Field::new(number, kind, scale);
            // Values go by their field.
            if fields.contains(&field) {
                return Err(Malformed("a field is there twice"));
            }
            fields.push(field);
        }
        Ok(fields)
    }

    /// Reads an entry.
    pub fn entry(&mut self) -> Result<Entry, Malformed> {
        let list = List(self.narrow()?);
        let (name, id) = (self.text()?, self.text()?);
        Ok(Entry { list, name, id, nth: self.narrow()? })
    }

    /// Reads an open series.
    pub fn series(&mut self) -> Result<Series, Malformed> {
        let (name, unit) = (self.text()?, self.text()?);
        let kind = Kind::of(self.number()?).ok_or(Malformed("an unknown kind of metric"))?;
        let target = if self.count(1)? == 1 { Some(self.text()?) } else { None };
        Ok(Series { name, unit, kind, target })
    }
}

/// Refuses duplicates: they would become two columns of one name, which readers would confuse.
pub fn all_different<T: Eq + Hash>(some: &[T]) -> Result<(), Malformed> {
    let mut seen = HashSet::with_capacity(some.len());
    if some.iter().all(|one| seen.insert(one)) { Ok(()) } else { Err(Malformed("an entry is there twice")) }
}
