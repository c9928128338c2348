//! Counts of a text: its words, its free relatives, and the lengths of its sentences.

use super::Passage;

/// Words that stand for an actor or a thing that the sentence does not name. In a question they are right.
const RELATIVES: [&str; 8] =
    ["who", "whom", "whose", "whoever", "whomever", "whosesoever", "what", "whatever"];
/// Fixed words in which they are right.
const FIXED: [&str; 2] = ["what to do", "what next"];
/// A shorter sentence is a label and says nothing of the text's sentences.
const SHORTEST: usize = 3;

/// The counts of one text.
#[derive(Debug, Default)]
pub struct Measure {
    pub words: usize,
    pub relatives: usize,
    /// Number of words of each sentence, sorted.
    lengths: Vec<usize>,
    /// Sentences for people: place and text, with the number of their relatives and of their words.
    sentences: Vec<(usize, usize, String)>,
}

impl Measure {
    pub fn of(passages: &[Passage]) -> Self {
        let mut measure = Self::default();
        for passage in passages {
            for sentence in sentences(&passage.text) {
                measure.add(&passage.place, sentence);
            }
        }
        measure.lengths.sort_unstable();
        measure
    }

    fn add(&mut self, place: &str, sentence: &str) {
        let words = sentence.split_whitespace();
        let words = words.filter(|word| word.chars().any(char::is_alphabetic)).count();
        let relatives = if sentence.ends_with('?') { 0 } else { relatives(sentence) };
        self.words += words;
        self.relatives += relatives;
        if words >= SHORTEST {
            self.lengths.push(words);
            self.sentences.push((relatives, words, format!("{place}: {sentence}")));
        }
    }

    pub fn relatives_per_1000(&self) -> f64 {
        1000.0 * self.relatives as f64 / self.words.max(1) as f64
    }

    /// Words of the sentence at this quantile.
    pub fn sentence(&self, quantile: f64) -> usize {
        let at = (self.lengths.len() as f64 * quantile) as usize;
        self.lengths.get(at).copied().unwrap_or(0)
    }

    /// The worst sentences, with their places: those with most free relatives first, then the longest.
    pub fn worst(&self, most: usize) -> impl Iterator<Item = &str> {
        let mut worst: Vec<_> = self.sentences.iter().collect();
        worst.sort_by_key(|(relatives, words, _)| std::cmp::Reverse((*relatives, *words)));
        worst.into_iter().take(most).map(|(_, _, line)| line.as_str())
    }
}

/// Free relatives in a sentence.
fn relatives(sentence: &str) -> usize {
    let mut sentence = sentence.to_lowercase();
    for fixed in FIXED {
        sentence = sentence.replace(fixed, "");
    }
    let words = sentence.split(|c: char| !c.is_alphabetic());
    words.filter(|word| RELATIVES.contains(word)).count()
}

/// The sentences of a passage: they end with a full stop, an exclamation mark or a question mark before a new beginning.
fn sentences(passage: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in passage.char_indices().filter(|(_, c)| ".!?".contains(*c)) {
        let after = passage[at + c.len_utf8()..].trim_start_matches([')', '"', '\'', '*', '”']);
        let next = after.trim_start();
        let begins = next.starts_with(|c: char| c.is_uppercase() || "(\"*“".contains(c))
            || next.starts_with("code");
        if next.len() < after.len() && begins {
            let end = passage.len() - next.len();
            found.push(passage[start..end].trim());
            start = end;
        }
    }
    found.push(passage[start..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_a_new_one_begins() {
        let text = "One is 1.5 s. Two (in brackets.) Three? code is four";
        assert_eq!(
            sentences(text),
            ["One is 1.5 s.", "Two (in brackets.)", "Three?", "code is four"]
        );
    }

    #[test]
    fn relatives_count_outside_questions_and_fixed_words() {
        let passage = |text: &str| Passage { place: "a:1".into(), text: text.into() };
        let text = "Whoever sends is told what was lost. Who may call? It says what to do.";
        let measure = Measure::of(&[passage(text)]);
        assert_eq!((measure.words, measure.relatives), (15, 2));
        assert_eq!((measure.sentence(0.5), measure.sentence(0.9)), (5, 7));
        assert_eq!(measure.worst(1).next(), Some("a:1: Whoever sends is told what was lost."));
    }
}
