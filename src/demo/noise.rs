//! Noise that follows from a seed and a position, so that the past and the present of a simulated server agree. Pure.

/// Mixes two numbers into one that looks random, with the finaliser of SplitMix64.
pub fn mix(seed: u64, number: u64) -> u64 {
    let mut mixed = seed ^ number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A seed from a name.
pub fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0x5DEE_CE66, |seed, byte| mix(seed, byte.into()))
}

/// A number from 0 to 1.
pub fn unit(seed: u64, number: u64) -> f64 {
    (mix(seed, number) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number from `low` to `high`, both included.
pub fn between(seed: u64, number: u64, low: u64, high: u64) -> u64 {
    low + mix(seed, number) % (high - low + 1)
}

/// One of these; the default without any.
pub fn choose<T: Copy + Default>(seed: u64, number: u64, from: &[T]) -> T {
    let place = mix(seed, number) % from.len().max(1) as u64;
    usize::try_from(place).ok().and_then(|place| from.get(place)).copied().unwrap_or_default()
}

/// A number from -1 to 1 that changes smoothly, over about `period` seconds.
pub fn smooth(seed: u64, seconds: f64, period: f64) -> f64 {
    let place = seconds / period;
    let (cell, part) = (place.floor(), place - place.floor());
    let eased = part * part * (3.0 - 2.0 * part);
    let at = |cell: f64| unit(seed, (cell as i64).cast_unsigned()) * 2.0 - 1.0;
    at(cell) * (1.0 - eased) + at(cell + 1.0) * eased
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_has_the_same_noise() {
        assert_eq!(smooth(7, 1_000.5, 30.0), smooth(7, 1_000.5, 30.0));
        assert_ne!(seed_of("web-eu-1"), seed_of("web-eu-2"));
    }

    #[test]
    fn noise_is_bounded_and_without_jumps() {
        let values: Vec<f64> = (0..10_000).map(|step| smooth(3, f64::from(step) / 10.0, 20.0)).collect();

        assert!(values.iter().all(|value| (-1.0..=1.0).contains(value)));
        assert!(values.iter().zip(values.iter().skip(1)).all(|(one, next)| (one - next).abs() < 0.02));
    }

    #[test]
    fn chosen_numbers_are_within_their_bounds() {
        assert!((0..1_000).all(|number| (3..=9).contains(&between(1, number, 3, 9))));
        assert_eq!(choose::<&str>(1, 1, &[]), "");
    }
}
