//! The rollouts of requests.

use deserr::Deserr;
use paperclip::actix::Apiv2Schema;

use crate::http::extract::cross_check::{CrossCheck, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{Number, Tags};
use crate::http::token_terms::check_length;

/// More than a careful person needs.
const MAX_WAVES: usize = 10;

/// A week.
const MAX_PAUSE_MINUTES: u64 = 7 * 24 * 60;

/// Half an hour shows most of what is wrong with a build.
const USUAL_PAUSE_MINUTES: u64 = 30;

/// One wave of a rollout.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct WaveIn {
    /// The servers with one of these tags, as far as no earlier wave has them. An empty list is for all others, and stands in the last
    /// wave only.
    tags: Tags,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct RolloutIn {
    /// 1 to 10 waves. A server in none of them is not part of the rollout.
    waves: Vec<WaveIn>,
    /// How long to wait after a wave before the next one begins. Defaults to 30.
    #[deserr(default)]
    pause_minutes: Option<Number<0, { MAX_PAUSE_MINUTES }>>,
    /// How many servers may fail: one more stops the rollout. Defaults to 0.
    #[deserr(default)]
    max_failed: Option<Number<0, 1_000>>,
}

impl CrossCheck for RolloutIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let Some(waves) = fields.sound::<Vec<WaveIn>>("waves") else { return Ok(()) };
        let location = fields.location.push_key("waves");
        let Some((_, before)) = waves.split_last() else {
            return Err(Faults::at(location, "value_error.list.min_items", "ensure this value has at least 1 items"));
        };
        let mut faults = check_length("waves", Some(waves.len()), MAX_WAVES, fields.location).err().unwrap_or_default();
        if let Some(place) = before.iter().position(|wave| wave.tags.0.is_empty()) {
            let msg = "only the last wave may be for all other servers";
            faults.0.extend(Faults::at(location.push_index(place).push_key("tags"), "value_error.wave", msg).0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

impl RolloutIn {
    /// The tags of each wave.
    pub fn tags(&self) -> Vec<Vec<String>> {
        self.waves.iter().map(|wave| wave.tags.0.clone()).collect()
    }

    pub fn pause_seconds(&self) -> i32 {
        let minutes = self.pause_minutes.map_or(USUAL_PAUSE_MINUTES, |Number(minutes)| minutes);
        i32::try_from(minutes.saturating_mul(60)).unwrap_or(i32::MAX)
    }

    pub fn max_failed(&self) -> i32 {
        self.max_failed.map_or(0, |Number(most)| i32::try_from(most).unwrap_or(i32::MAX))
    }
}

/// The first wave that is for a server with these tags, from 0.
pub fn wave_of(waves: &[Vec<String>], tags: &[String]) -> Option<i32> {
    let is_for = |wave: &Vec<String>| wave.is_empty() || wave.iter().any(|tag| tags.contains(tag));
    waves.iter().position(is_for).and_then(|place| i32::try_from(place).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::extract::cross_check::CrossChecked;

    #[test]
    fn faults_of_waves_come_with_those_of_other_fields() {
        let waves = vec![json!({ "tags": [] }); 11];
        let rollout = json!({ "waves": waves, "max_failed": -1 });

        let Faults(found) = deserr::deserialize::<CrossChecked<RolloutIn>, _, Faults>(rollout).unwrap_err();

        let kinds: Vec<&str> = found.iter().map(|fault| fault.r#type.as_str()).collect();
        assert_eq!(kinds, ["value_error.number.not_ge", "value_error.list.max_items", "value_error.wave"]);
    }

    #[test]
    fn a_server_belongs_to_the_first_wave_with_one_of_its_tags() {
        let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>();
        let waves = [texts(&["canary"]), texts(&["db", "web"]), texts(&[])];

        assert_eq!(wave_of(&waves, &texts(&["web", "canary"])), Some(0));
        assert_eq!(wave_of(&waves, &texts(&["eu", "db"])), Some(1));
        assert_eq!(wave_of(&waves, &texts(&[])), Some(2));
        assert_eq!(wave_of(&waves[..2], &texts(&["mail"])), None);
    }
}
