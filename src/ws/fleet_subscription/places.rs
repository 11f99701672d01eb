//! What a socket's list of servers costs.

use crate::shares::{Full, Gate, Permit, Share};

/// Servers for which a list needs one place.
const SERVERS_OF_A_PLACE: usize = 500;

/// The places of one list, at least one.
pub struct ListPlaces {
    gate: Gate,
    share: Share,
    permits: Vec<Permit>,
}

impl ListPlaces {
    /// The place of a list that is not read yet.
    pub fn new(gate: &Gate, share: Share) -> Result<Self, Full> {
        Ok(Self { permits: vec![gate.try_enter(share)?], gate: gate.clone(), share })
    }

    /// Takes the places that a list of this length needs, and gives back the others.
    pub fn resize(&mut self, servers: usize) -> Result<(), Full> {
        let needed = servers.div_ceil(SERVERS_OF_A_PLACE).max(1);
        self.permits.truncate(needed);
        while self.permits.len() < needed {
            self.permits.push(self.gate.try_enter(self.share)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::line::{Limits, Stay};

    #[test]
    fn a_long_list_takes_several_places_and_gives_them_back() {
        let gate = Gate::new("test", Limits { places: 8, waiting: 0, stay: Stay::Long });
        let (one, other) = (Share::Host(1), Share::Host(2));
        let mut places = ListPlaces::new(&gate, one).unwrap();

        let inside = [0, 500, 501, 2_000, 499].map(|servers| {
            places.resize(servers).unwrap();
            gate.inside()
        });

        assert_eq!(inside, [1, 1, 2, 4, 1]);
        assert!(places.resize(2_001).is_err(), "more than the half of an account");
        assert!(ListPlaces::new(&gate, one).is_err());
        assert!(ListPlaces::new(&gate, other).is_ok());
        drop(places);
        assert_eq!(gate.inside(), 0);
    }
}
