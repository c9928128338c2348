//! Text that differs between runs. The code is replaced by the code in the README. Sizes, times and
//! rates are shown as they were, and are excluded from the comparison.

use super::terminal::{Screen, StyledText};

/// Replacements of words on the screen.
#[derive(Debug, Default)]
pub struct Masks {
    words: Vec<(String, String)>,
}

impl Masks {
    pub fn replace(&mut self, word: &str, by: &str) {
        self.words.push((word.to_owned(), by.to_owned()));
    }

    pub fn apply(&self, screen: &Screen) -> Screen {
        let piece =
            |piece: &StyledText| StyledText { text: self.text(&piece.text), color: piece.color };
        Screen(screen.0.iter().map(|line| line.iter().map(piece).collect()).collect())
    }

    fn text(&self, text: &str) -> String {
        self.words.iter().fold(text.to_owned(), |text, (word, by)| text.replace(word, by))
    }
}

/// Returns a transcript without the parts that differ between runs: the letters of NodeIds, ports,
/// times and rates, free space.
pub fn comparable(transcript: &str) -> String {
    let line = |line: &str| {
        let line = before(line, " at 127.0.0.1:", 1, id);
        let line = between(&line, "127.0.0.1:", is_digit, |_| "PORT".into());
        let line = before(&line, " offers ", 1, id);
        let line = before(&line, " to accept.", 1, id);
        let line = before(&line, " free", 2, |_| "SPACE".into());
        let line = before(&line, " as a contact?", 1, id);
        let line = between(&line, "local network by ", |c| c.is_alphanumeric(), id);
        if !line.contains("verified") {
            return line;
        }
        let line = between(&line, " in ", |c| c != '(', |_| "TIME ".into());
        between(&line, "(", |c| c != ')', |_| "RATE".into())
    };
    // Two threads of the sender report the used code and the arrived receiver; either may be first.
    let mut lines: Vec<_> = transcript.lines().map(line).collect();
    lines.sort();
    lines.join("\n")
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Masks a NodeId except for its length: status lines show 8 letters, and questions 16.
fn id(letters: &str) -> String {
    let mask = |c: char| if c.is_alphanumeric() { '?' } else { c };
    letters.chars().map(mask).collect()
}

/// Replaces the text after `mark`, as far as its letters satisfy `is`.
fn between(
    text: &str,
    mark: &str,
    is: impl Fn(char) -> bool,
    by: impl Fn(&str) -> String,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((start, after)) = rest.split_once(mark) {
        let end = after.find(|c| !is(c)).unwrap_or(after.len());
        out.push_str(start);
        out.push_str(mark);
        if end > 0 {
            out.push_str(&by(&after[..end]));
        }
        rest = &after[end..];
    }
    out + rest
}

/// Replaces `words` words in front of `mark`.
fn before(text: &str, mark: &str, words: usize, by: impl Fn(&str) -> String) -> String {
    let Some(at) = text.find(mark) else { return text.to_owned() };
    let start = text[..at].rmatch_indices(' ').nth(words - 1).map_or(0, |(space, _)| space + 1);
    format!("{}{}{}", &text[..start], by(&text[start..at]), &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_replace_only_changing_values() {
        let same = |text: &str, wanted: &str| assert_eq!(comparable(text), wanted);
        same(
            "Connected to ab at 127.0.0.1:51234 (loopback).",
            "Connected to ?? at 127.0.0.1:PORT (loopback).",
        );
        same("ab offers film.mov", "?? offers film.mov");
        same(
            "Offered 1 file. Waiting for ab to accept.",
            "Offered 1 file. Waiting for ?? to accept.",
        );
        same(
            "Sent 1 file, 419 MB in 12.3 s (34 MB/s), verified.",
            "Sent 1 file, 419 MB in TIME (RATE), verified.",
        );
        same("Save the sender (ab) as a contact?", "Save the sender (??) as a contact?");
        same("  into ., 57.7 GB free", "  into ., SPACE free");
        same("one try within 60 min\nnext (line)", "next (line)\none try within 60 min");
    }

    #[test]
    fn words_are_replaced_wherever_they_stand() {
        let mut masks = Masks::default();
        masks.replace("9-apple-pear", "7-crater-lemon");
        assert_eq!(masks.text("wraith receive 9-apple-pear"), "wraith receive 7-crater-lemon");
    }
}
