//! Fields that only make sense together: their own faults wait, so that they are told with those of the whole.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::v2::models::DefaultSchemaRaw;
use paperclip::v2::schema::Apiv2Schema;

use super::fault::Faults;
use crate::http::reply::fault_of;

/// A field of a body whose `validate` looks at it, and tells its faults.
#[derive(Debug, Clone, Default)]
pub enum Given<T> {
    #[default]
    Missing,
    Sound(T),
    Faulty(Faults),
}

impl<T> Given<T> {
    /// The field, if it is there and sound. What is wrong with it joins the other faults.
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

    /// The same for a field that must be there.
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
    /// The same for a field that null leaves out.
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
