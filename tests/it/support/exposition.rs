//! A reader of Prometheus' text format 0.0.4 that takes nothing the format does not allow, and nothing that a server of
//! ours should not write: metrics without HELP or TYPE, families in pieces, a series twice, timestamps.

use std::collections::{BTreeMap, BTreeSet};

/// One line that is a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// As it is in the text.
    pub value: String,
}

/// All of the exposition.
#[derive(Debug)]
pub struct Exposition {
    pub series: Vec<Series>,
    /// Name to type.
    pub families: BTreeMap<String, String>,
}

impl Exposition {
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        assert!(text.is_empty() || text.ends_with('\n'), "the last line has no end: {text:?}");
        let mut read = Self { series: Vec::new(), families: BTreeMap::new() };
        let mut helped = BTreeSet::new();
        let mut current = String::new();
        let mut told = BTreeSet::new();
        for line in text.split_terminator('\n') {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap_or_else(|| panic!("HELP without a text: {line}"));
                assert!(is_metric_name(name) && !help.is_empty(), "{line}");
                assert!(helped.insert(name.to_owned()), "a second HELP: {line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
                assert!(["gauge", "counter"].contains(&kind), "{line}");
                assert!(helped.contains(name), "TYPE before HELP: {line}");
                assert!(read.families.insert(name.to_owned(), kind.to_owned()).is_none(), "a second TYPE: {line}");
                current = name.to_owned();
            } else {
                let series = Reader { line, rest: line }.series();
                assert_eq!(series.name, current, "a family in pieces: {line}");
                assert!(told.insert((series.name.clone(), series.labels.clone())), "told twice: {line}");
                read.series.push(series);
            }
        }
        assert_eq!(helped.len(), read.families.len(), "HELP without TYPE");
        read
    }

    /// The values of a family's series that have all of these labels.
    pub fn values(&self, name: &str, labels: &[(&str, &str)]) -> Vec<&str> {
        let has = |series: &&Series| {
            let mut wanted = labels.iter();
            series.name == name && wanted.all(|(label, value)| series.labels.get(*label).is_some_and(|is| is == value))
        };
        self.series.iter().filter(has).map(|series| series.value.as_str()).collect()
    }

    /// The one value of a family's series that has all of these labels.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> &str {
        let values = self.values(name, labels);
        assert_eq!(values.len(), 1, "{name} {labels:?} in {self:?}");
        values[0]
    }

    /// The values that a label has anywhere.
    pub fn values_of_label(&self, label: &str) -> BTreeSet<&str> {
        self.series.iter().filter_map(|series| series.labels.get(label)).map(String::as_str).collect()
    }
}

struct Reader<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn series(mut self) -> Series {
        let name = self.until('{');
        assert!(is_metric_name(name), "{}", self.line);
        let mut labels = BTreeMap::new();
        while !self.skip('}') {
            assert!(labels.is_empty() || self.skip(','), "no comma: {}", self.line);
            let label = self.until('=');
            assert!(is_label_name(label), "{label:?} in {}", self.line);
            let value = self.quoted();
            assert!(labels.insert(label.to_owned(), value).is_none(), "{label} twice: {}", self.line);
        }
        assert!(self.skip(' '), "no blank before the value: {}", self.line);
        assert!(self.rest.parse::<f64>().is_ok_and(f64::is_finite), "not one number: {}", self.line);
        Series { name: name.to_owned(), labels, value: self.rest.to_owned() }
    }

    fn until(&mut self, end: char) -> &'a str {
        let (text, rest) = self.rest.split_once(end).unwrap_or_else(|| panic!("no {end}: {}", self.line));
        self.rest = rest;
        text
    }

    fn skip(&mut self, expected: char) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn next(&mut self) -> char {
        let next = self.rest.chars().next().unwrap_or_else(|| panic!("ends too early: {}", self.line));
        self.rest = &self.rest[next.len_utf8()..];
        next
    }

    fn quoted(&mut self) -> String {
        assert_eq!(self.next(), '"', "{}", self.line);
        let mut value = String::new();
        loop {
            match self.next() {
                '"' => return value,
                '\\' => match self.next() {
                    'n' => value.push('\n'),
                    plain @ ('\\' | '"') => value.push(plain),
                    other => panic!("\\{other} is no escape: {}", self.line),
                },
                plain => value.push(plain),
            }
        }
    }
}

fn is_metric_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    name.bytes().all(is_allowed) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

fn is_label_name(name: &str) -> bool {
    is_metric_name(name) && !name.contains(':') && !name.starts_with("__")
}
