//! The words of a code: two lists of 1024 English words, the second for the second place and the first for the others, so that a pair
//! is worth 20 bits and three words 30.
//!
//! Invariants (tests below): a word has 4 to 7 letters; within a list no two share their first four letters, and none
//! becomes another by changing, losing, adding one letter or swapping two neighbours; no word is in both lists. So one
//! slip of the finger never turns a code into another code, and four letters are enough to type. The lists may be
//! put in any order, but a word is never taken out while codes with it are about: the words themselves are the secret.

use std::sync::LazyLock;

/// Words in each list; each is worth 10 bits.
pub const WORDS_PER_LIST: usize = 1024;

/// Letters after which a word that is not finished yet is taken for the only one that begins so. Fewer would make a guess
/// out of a slip.
const SHORTEST_PREFIX: usize = 3;

/// How many words are proposed in place of one that is not in the list.
const MOST_PROPOSALS: usize = 5;
/// Slips beyond which a word is not like another.
const MOST_SLIPS: usize = 2;

static LISTS: LazyLock<[Vec<&str>; 2]> = LazyLock::new(|| {
    [include_str!("words/first.txt"), include_str!("words/second.txt")]
        .map(|text| text.lines().collect())
});

/// Where in a code a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// After the number.
    First,
    /// After the first.
    Second,
    /// At the end of a code for several receivers.
    Third,
}

/// The words that may stand at a place, in alphabetical order.
pub fn list(place: Place) -> &'static [&'static str] {
    match place {
        Place::First | Place::Third => &LISTS[0],
        Place::Second => &LISTS[1],
    }
}

/// The word that was meant by `typed` (lower case): the word itself, or the only one that begins so.
pub fn find(place: Place, typed: &str) -> Option<&'static str> {
    let words = list(place);
    if let Ok(at) = words.binary_search(&typed) {
        return Some(words[at]);
    }
    match beginning_with(place, typed) {
        [only] if typed.len() >= SHORTEST_PREFIX => Some(only),
        _ => None,
    }
}

/// All words that begin with `prefix` (lower case).
pub fn beginning_with(place: Place, prefix: &str) -> &'static [&'static str] {
    let words = list(place);
    let from = words.partition_point(|word| *word < prefix);
    let len = words[from..].partition_point(|word| word.starts_with(prefix));
    &words[from..from + len]
}

/// The words most like `typed`: what somebody may have meant who typed a word that is not there. None if none is like it.
pub fn nearest(place: Place, typed: &str) -> Vec<&'static str> {
    let mut ranked: Vec<_> = list(place)
        .iter()
        .map(|word| (if word.starts_with(typed) { 1 } else { distance(word, typed) }, *word))
        .filter(|(slips, _)| *slips <= MOST_SLIPS)
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(MOST_PROPOSALS).map(|(_, word)| word).collect()
}

/// Letters changed, lost, added, or swapped with their neighbour on the way from `a` to `b` (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Rows of the table for the letters of `a` before last, last, and now.
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut now = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            now[j] = changed.min(last[j] + 1).min(now[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                now[j] = now[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, now);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PLACES: [Place; 2] = [Place::First, Place::Second];

    #[test]
    fn each_list_has_1024_sorted_lower_case_words_of_4_to_7_letters() {
        for place in PLACES {
            let words = list(place);
            assert_eq!(words.len(), WORDS_PER_LIST);
            assert!(words.is_sorted_by(|a, b| a < b));
            for word in words {
                assert!((4..=7).contains(&word.len()), "{word}");
                assert!(word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
            }
        }
    }

    #[test]
    fn four_letters_tell_a_word_and_one_slip_makes_none_of_another() {
        for place in PLACES {
            let prefixes: HashSet<_> = list(place).iter().map(|word| &word[..4]).collect();
            assert_eq!(prefixes.len(), WORDS_PER_LIST);
            for (at, a) in list(place).iter().enumerate() {
                for b in &list(place)[at + 1..] {
                    assert!(distance(a, b) >= 2, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn no_word_is_in_both_lists() {
        let first: HashSet<_> = list(Place::First).iter().collect();
        assert!(list(Place::Second).iter().all(|word| !first.contains(word)));
    }

    #[test]
    fn every_word_is_found_whole_and_by_four_letters() {
        for place in PLACES {
            for word in list(place) {
                assert_eq!(find(place, word), Some(*word));
                assert_eq!(find(place, &word[..4]), Some(*word));
                assert_eq!(beginning_with(place, &word[..4]), [*word]);
            }
        }
    }

    #[test]
    fn what_fits_several_words_or_none_is_no_word() {
        let word = list(Place::First)[100];
        assert_eq!(find(Place::First, &word[..1]), None);
        assert_eq!(find(Place::First, ""), None);
        assert_eq!(find(Place::First, "qqqq"), None);
        assert_eq!(find(Place::First, &format!("{word}x")), None);
        assert_eq!(find(Place::Second, word), None);
        assert_eq!(beginning_with(Place::First, "").len(), WORDS_PER_LIST);
    }

    #[test]
    fn the_word_that_was_meant_is_among_the_proposals() {
        for place in PLACES {
            for word in list(place) {
                let slip = format!("{}{}", &word[..2], &word[3..]);
                if find(place, &slip).is_none() {
                    assert!(nearest(place, &slip).contains(word), "{slip}: {word}");
                }
            }
        }
    }

    #[test]
    fn a_word_like_none_gets_no_proposals() {
        assert!(nearest(Place::First, "qqqqqqq").is_empty());
    }

    #[test]
    fn distances_are_those_of_optimal_string_alignment() {
        let cases = [("lemon", "lemon", 0), ("lemon", "melon", 2), ("lemon", "lmeon", 1)];
        let more =
            [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("crater", "crate", 1)];
        for (a, b, expected) in cases.into_iter().chain(more) {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
