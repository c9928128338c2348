//! The word lists of codes: two lists of 1024 English words. The second list is for the second
//! position, the first for all others. Two words hold 20 bits, three hold 30.
//!
//! Invariants (tested below):
//!
//! - A word has 4 to 7 letters.
//! - Within a list, no two words share their first four letters.
//! - Within a list, changing, dropping or adding one letter, or swapping two neighbours, never
//!   yields another word.
//! - No word is in both lists.
//!
//! One typing error therefore never turns a code into another code, and four letters are enough to
//! type. The lists may be reordered, but no word may be removed while codes with it are in use: the
//! words themselves are the secret.

use std::sync::LazyLock;

/// Words per list; each word holds 10 bits.
pub const WORDS_PER_LIST: usize = 1024;

/// Least number of letters in an abbreviated word. Fewer would turn a typing error into a guess.
const SHORTEST_PREFIX: usize = 3;

/// Most suggestions for an unknown word.
const MOST_PROPOSALS: usize = 5;
/// Most typing errors in a suggestion.
const MAX_EDIT_DISTANCE: usize = 2;

static LISTS: LazyLock<[Vec<&str>; 2]> = LazyLock::new(|| {
    [include_str!("words/first.txt"), include_str!("words/second.txt")]
        .map(|text| text.lines().collect())
});

/// Position of a word in a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordPosition {
    /// After the number.
    First,
    /// After the first word.
    Second,
    /// Last word of a code for several receivers.
    Third,
}

/// Returns the words for a position in alphabetical order.
pub fn list(position: WordPosition) -> &'static [&'static str] {
    match position {
        WordPosition::First | WordPosition::Third => &LISTS[0],
        WordPosition::Second => &LISTS[1],
    }
}

/// Returns the word that `typed` (lower case) means: the word itself, or the only one with this
/// prefix.
pub fn find(position: WordPosition, typed: &str) -> Option<&'static str> {
    let words = list(position);
    if let Ok(at) = words.binary_search(&typed) {
        return Some(words[at]);
    }
    match beginning_with(position, typed) {
        [only] if typed.len() >= SHORTEST_PREFIX => Some(only),
        _ => None,
    }
}

/// Returns all words that start with `prefix` (lower case).
pub fn beginning_with(position: WordPosition, prefix: &str) -> &'static [&'static str] {
    let words = list(position);
    let from = words.partition_point(|word| *word < prefix);
    let len = words[from..].partition_point(|word| word.starts_with(prefix));
    &words[from..from + len]
}

/// Returns the words closest to `typed` as suggestions. Empty if no word is close.
pub fn nearest(position: WordPosition, typed: &str) -> Vec<&'static str> {
    let mut ranked: Vec<_> = list(position)
        .iter()
        .map(|word| (if word.starts_with(typed) { 1 } else { distance(word, typed) }, *word))
        .filter(|(slips, _)| *slips <= MAX_EDIT_DISTANCE)
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(MOST_PROPOSALS).map(|(_, word)| word).collect()
}

/// Returns the number of changed, lost, added or swapped letters between `a` and `b` (optimal
/// string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Rows of the table for the letter of `a` before last, the last, and the current one.
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

    const PLACES: [WordPosition; 2] = [WordPosition::First, WordPosition::Second];

    #[test]
    fn each_list_has_1024_sorted_lower_case_words_of_4_to_7_letters() {
        for position in PLACES {
            let words = list(position);
            assert_eq!(words.len(), WORDS_PER_LIST);
            assert!(words.is_sorted_by(|a, b| a < b));
            for word in words {
                assert!((4..=7).contains(&word.len()), "{word}");
                assert!(word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
            }
        }
    }

    #[test]
    fn four_letters_identify_a_word_and_one_typo_yields_no_other_word() {
        for position in PLACES {
            let prefixes: HashSet<_> = list(position).iter().map(|word| &word[..4]).collect();
            assert_eq!(prefixes.len(), WORDS_PER_LIST);
            for (at, a) in list(position).iter().enumerate() {
                for b in &list(position)[at + 1..] {
                    assert!(distance(a, b) >= 2, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn no_word_is_in_both_lists() {
        let first: HashSet<_> = list(WordPosition::First).iter().collect();
        assert!(list(WordPosition::Second).iter().all(|word| !first.contains(word)));
    }

    #[test]
    fn every_word_is_found_by_its_text_and_by_four_letters() {
        for position in PLACES {
            for word in list(position) {
                assert_eq!(find(position, word), Some(*word));
                assert_eq!(find(position, &word[..4]), Some(*word));
                assert_eq!(beginning_with(position, &word[..4]), [*word]);
            }
        }
    }

    #[test]
    fn an_ambiguous_or_unknown_prefix_is_no_word() {
        let word = list(WordPosition::First)[100];
        assert_eq!(find(WordPosition::First, &word[..1]), None);
        assert_eq!(find(WordPosition::First, ""), None);
        assert_eq!(find(WordPosition::First, "qqqq"), None);
        assert_eq!(find(WordPosition::First, &format!("{word}x")), None);
        assert_eq!(find(WordPosition::Second, word), None);
        assert_eq!(beginning_with(WordPosition::First, "").len(), WORDS_PER_LIST);
    }

    #[test]
    fn the_intended_word_is_among_the_suggestions() {
        for position in PLACES {
            for word in list(position) {
                let slip = format!("{}{}", &word[..2], &word[3..]);
                if find(position, &slip).is_none() {
                    assert!(nearest(position, &slip).contains(word), "{slip}: {word}");
                }
            }
        }
    }

    #[test]
    fn an_unlike_word_gets_no_suggestions() {
        assert!(nearest(WordPosition::First, "qqqqqqq").is_empty());
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
