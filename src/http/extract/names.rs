//! Names of series in queries. What a name has after its colon may have commas, and blanks at its ends.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::v2::models::DefaultSchemaRaw;
use paperclip::v2::schema::Apiv2Schema;
use serde_json::json;
use signalbox_protocol::series::is_series_name;

use super::fault::Faults;
use super::field::described;
use super::param::{listed, texts};
use crate::metrics::combined::stands_for;

/// Names of series, separated by commas or in several parameters. The whole text of a parameter, such as
/// `disk_percent:/mnt/a,b`, is a name where there is such a series, and a list where there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    texts: BTreeSet<String>,
    /// Whether no text that can be a name is a list.
    is_exact: bool,
}

impl Names {
    /// Every name that may be meant.
    pub fn all(&self) -> HashSet<String> {
        let mut all = self.meant(|_| true);
        all.extend(self.meant(|_| false));
        all.into_iter().map(str::to_owned).collect()
    }

    /// The names that are meant if these series exist.
    pub fn meant(&self, exists: impl Fn(&str) -> bool) -> HashSet<&str> {
        let texts = self.texts.iter().map(String::as_str);
        let (names, lists): (Vec<&str>, Vec<&str>) =
            texts.partition(|text| can_be_name(text) && (self.is_exact || exists(text)));
        names.into_iter().chain(lists.into_iter().flat_map(listed)).collect()
    }

    /// Removes the columns that only a part of another column's name has chosen.
    pub fn remove_parts<T>(&self, columns: &mut BTreeMap<String, T>) {
        // Hardly any name has parts.
        if !self.texts.iter().any(|text| columns.contains_key(text) && listed(text).any(|part| part != text.as_str())) {
            return;
        }
        let meant = self.meant(|name| columns.contains_key(name));
        let parts: HashSet<String> = self.all().into_iter().filter(|name| !meant.contains(name.as_str())).collect();
        columns.retain(|column, _| !parts.contains(column) || meant.iter().any(|name| stands_for(name, column)));
    }

    /// How many there are, each list by what commas separate in it. Where a whole text is a name, that is one more.
    pub fn count(&self) -> usize {
        self.meant(|_| false).len()
    }

    /// Whether there are at most so many, also of parameters: each may be a name, however few parts they have in common. If only
    /// lists are too many, each of several parameters is one name.
    pub fn fit(&mut self, most: usize) -> bool {
        if self.texts.len() > most {
            return false;
        }
        if self.count() <= most {
            return true;
        }
        let has_names = |text: &str| listed(text).skip(1).any(can_be_name);
        let is_single = |text: &String| listed(text).count() <= 1 || (can_be_name(text) && !has_names(text));
        self.is_exact = self.texts.len() > 1 && self.texts.iter().all(is_single);
        self.is_exact
    }
}

/// Whether the whole text can be a name: what precedes a colon has neither commas nor blanks.
fn can_be_name(text: &str) -> bool {
    text.split_once(':').is_some_and(|(base, _)| is_series_name(base))
}

impl<const N: usize> From<[&str; N]> for Names {
    fn from(texts: [&str; N]) -> Self {
        Self { texts: texts.map(str::to_owned).into(), is_exact: false }
    }
}

impl Deserr<Faults> for Names {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        Ok(Self { texts: texts(value, location)?.into_iter().collect(), is_exact: false })
    }
}

described!(Names, json!({ "type": "string", "example": "cpu_percent,memory_percent" }));

/// At most `MAX` names of series.
#[derive(Debug, Clone)]
pub struct FewNames<const MAX: usize>(pub Names);

impl<const MAX: usize> Deserr<Faults> for FewNames<MAX> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let mut names = Names::deserialize_from_value(value, location)?;
        if names.fit(MAX) {
            return Ok(Self(names));
        }
        let msg = format!("ensure this value has at most {MAX} items");
        Err(Faults::at(location, "value_error.list.max_items", msg))
    }
}

impl<const MAX: usize> Apiv2Schema for FewNames<MAX> {
    fn raw_schema() -> DefaultSchemaRaw {
        Names::raw_schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> HashSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn given(value: serde_json::Value) -> Names {
        deserr::deserialize::<Names, _, Faults>(value).unwrap()
    }

    #[test]
    fn a_list_has_a_name_between_any_two_commas() {
        for value in [json!(" cpu_percent,,load_1 ,network_in:eth0"), json!(["cpu_percent,load_1", "network_in:eth0"])]
        {
            let names = given(value);

            assert_eq!(names.all(), set(&["cpu_percent", "load_1", "network_in:eth0"]));
            assert_eq!(names.count(), 3);
        }
        assert_eq!(given(json!("")).all(), set(&[]));
    }

    #[test]
    fn a_whole_text_is_a_name_where_it_exists_and_a_list_elsewhere() {
        let names = Names::from(["disk_percent:/mnt/a,b", "fan_speed:Rack A ", "load_1"]);
        let listed = ["disk_percent:/mnt/a", "b", "fan_speed:Rack A", "load_1"];

        assert_eq!(names.all(), &set(&listed) | &set(&["disk_percent:/mnt/a,b", "fan_speed:Rack A "]));
        assert_eq!(names.meant(|_| false), HashSet::from(listed));
        let exists = |name: &str| name != "fan_speed:Rack A ";
        assert_eq!(
            names.meant(exists),
            HashSet::from(["disk_percent:/mnt/a,b", "fan_speed:Rack A", "load_1"]),
            "only where it exists"
        );
    }

    #[test]
    fn parts_of_a_name_choose_no_other_column() {
        let left = |names: Names| {
            let all = ["disk_percent:/a", "disk_percent:/a,b", "disk_percent:/c"];
            let mut columns: BTreeMap<String, ()> = all.map(|name| (name.to_owned(), ())).into();
            columns.retain(|name, ()| names.all().iter().any(|wanted| stands_for(wanted, name)));
            names.remove_parts(&mut columns);
            columns.into_keys().collect::<Vec<_>>()
        };

        assert_eq!(left(["disk_percent:/a,b"].into()), ["disk_percent:/a,b"]);
        assert_eq!(left(["disk_percent:/a,b", "disk_percent:/a"].into()), ["disk_percent:/a", "disk_percent:/a,b"]);
        assert_eq!(left(["disk_percent:/a,disk_percent:/c"].into()), ["disk_percent:/a", "disk_percent:/c"]);
        assert_eq!(left(["disk_percent:/a,b", "disk_percent:*"].into()).len(), 3);
    }

    #[test]
    fn names_in_several_parameters_count_once_each() {
        let of = |texts: &[&str]| given(json!(texts));
        let mut several = of(&["disk_percent:/a,1", "disk_percent:/b,2", "load_1"]);
        assert!(several.fit(5));
        assert_eq!(several.count(), 5, "there is room for two lists");

        assert!(several.fit(3));
        assert_eq!(several.all(), set(&["disk_percent:/a,1", "disk_percent:/b,2", "load_1"]));
        assert_eq!(several.count(), 3);
        assert!(!several.clone().fit(2));
        assert!(!given(json!("temperature:a,temperature:b,temperature:c")).fit(2), "a list stays one");
        assert!(!of(&["load_1,load_5", "load_15"]).fit(2), "a list stays one");
        assert!(!of(&["power:a,power:b", "power:c,power:d"]).fit(3), "two lists stay two");
        assert!(!of(&["power:a", "power:a ", "power:a,"]).fit(2), "three texts may be three names");
    }
}
