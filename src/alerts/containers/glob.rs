//! Matches names against patterns.

/// Returns whether a name matches a pattern, in which `*` stands for any characters and `?` for exactly one. Takes time
/// proportional to the sum of the lengths in most cases, and never more than to their product.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut wanted, mut left) = (pattern.chars(), name.chars());
    // The pattern after the last star, and the part of the name that the star does not cover yet.
    let mut star = None;
    loop {
        let here = left.clone();
        match (wanted.next(), left.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                star = Some((wanted.clone(), here.clone()));
                left = here;
            }
            (Some('?'), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            // Only the last star has to cover more: giving more to an earlier one would not help.
            _ => {
                let Some((behind, untaken)) = &mut star else { return false };
                if untaken.next().is_none() {
                    return false;
                }
                (wanted, left) = (behind.clone(), untaken.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, without regard to time.
    fn plainly(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| plainly(rest, &name[taken..])),
            Some((one, rest)) => {
                name.split_first().is_some_and(|(first, left)| (*one == '?' || one == first) && plainly(rest, left))
            }
        }
    }

    #[test]
    fn stars_match_any_characters_and_question_marks_match_one() {
        for (pattern, name, is_like) in [
            ("web", "web", true),
            ("web", "web-1", false),
            ("web", "we", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("web-*", "web-1", true),
            ("web-*", "web", false),
            ("*-db", "shop-db", true),
            ("*-db", "shop-db-1", false),
            ("*db*", "shop-db-1", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("we?", "web", true),
            ("we?", "we", false),
            ("?", "ä", true),
            ("**", "x", true),
            ("a**", "a", true),
            ("Web", "web", false),
            ("[ab]", "a", false),
        ] {
            assert_eq!(matches(pattern, name), is_like, "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_exponential_time() {
        assert!(!matches(&"*a".repeat(500), &"a".repeat(499)));
        assert!(!matches(&format!("{}b", "*a".repeat(100)), &"a".repeat(10_000)));
    }

    proptest! {
        #[test]
        fn the_result_is_that_of_the_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();

            prop_assert_eq!(matches(&pattern, &name), plainly(&chars(&pattern), &chars(&name)));
        }
    }
}
