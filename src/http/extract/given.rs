//! Fields that are validated together: their own faults are kept, and reported with those of the whole body.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::v2::models::DefaultSchemaRaw;
use paperclip::v2::schema::Apiv2Schema;

use super::fault::Faults;
use crate::http::reply::fault_of;

/// A field of a body whose `validate` reads it and reports its faults.
#[derive(Debug, Clone, Default)]
pub enum Given<T> {
    #[default]
    Missing,
    Sound(T),
    Faulty(Faults),
}

impl<T> Given<T> {
    /// The field, if it is present and valid. Adds its faults to the others.
    pub fn sound(&self, faults: &mut Faults) -> Option<&T> {
        match self {
            Self::Missing => None,
            Self::Sound(value) => Some(value),
            Self::Faulty(found) => {
                faults.0.extend(found.0.iter().cloned());
                None
            }
        }
    }

    /// As [`Self::sound`], for a required field.
    pub fn needed(&self, name: &str, faults: &mut Faults) -> Option<&T> {
        if matches!(self, Self::Missing) {
            faults.0.extend(fault_of(name, "value_error.missing", "field required").0);
        }
        self.sound(faults)
    }

    pub fn is_faulty(&self) -> bool {
        matches!(self, Self::Faulty(_))
    }
}

impl<T> Given<Option<T>> {
    /// As [`Self::sound`], for a field that null omits.
    pub fn maybe(&self, faults: &mut Faults) -> Option<&T> {
        self.sound(faults).and_then(Option::as_ref)
    }
}

impl<T: Deserr<Faults>> Deserr<Faults> for Given<T> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        Ok(T::deserialize_from_value(value, location).map_or_else(Self::Faulty, Self::Sound))
    }
}

impl<T: Apiv2Schema> Apiv2Schema for Given<T> {
    fn required() -> bool {
        T::required()
    }

    fn raw_schema() -> DefaultSchemaRaw {
        T::raw_schema()
    }
}
