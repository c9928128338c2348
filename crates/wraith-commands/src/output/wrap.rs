//! Wraps text for people between words at the width of their terminal. A word that is longer than a
//! line (a ticket) stays whole, so that it can be copied.

use super::line::columns as width;

/// Prefix of a message of this program. Further lines of the message are indented to its width.
const NAME: &str = "wraith: ";

/// Wraps `text` into lines of fewer than `columns`, because some terminals wrap when the last
/// column is written.
pub fn at_words(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let own = indent_of(line);
        let below = if line.starts_with(NAME) { NAME.len() } else { own };
        wrap(line, columns, below, &mut wrapped);
        wrapped.push_str(end);
    }
    wrapped
}

/// Wraps one line of a table. Its last column starts at `below`, and so do the further lines.
pub fn at_words_below(line: &str, columns: usize, below: usize) -> String {
    let mut wrapped = String::with_capacity(line.len());
    wrap(line, columns, below, &mut wrapped);
    wrapped
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn wrap(line: &str, columns: usize, indent: usize, wrapped: &mut String) {
    if width(line) < columns {
        wrapped.push_str(line);
        return;
    }
    let own = indent_of(line);
    let mut used = 0;
    // Each word together with the spaces behind it.
    for word in line[own..].split_inclusive(' ') {
        if used == 0 {
            wrapped.push_str(&line[..own]);
            used = own;
        } else if used + width(word.trim_end_matches(' ')) >= columns && used > indent {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        }
        wrapped.push_str(word);
        used += width(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_go_on_below_where_they_began() {
        assert_eq!(at_words("one two three", 9), "one two\nthree");
        assert_eq!(at_words("  one two three", 9), "  one\n  two\n  three");
        assert_eq!(
            at_words("wraith: one two three", 14),
            "wraith: one\n        two\n        three"
        );
        assert_eq!(at_words("one\ntwo three\n", 8), "one\ntwo\nthree\n");
        assert_eq!(at_words_below("ok  one two three", 9, 4), "ok  one\n    two\n    three");
    }

    #[test]
    fn fitting_lines_stay_unchanged_and_long_words_whole() {
        for same in ["", "a  b   c ", "Accept? [y/N] ", "\n\nx\n", "a-word-of-twenty-five-letter"] {
            assert_eq!(at_words(same, 20), same);
        }
        assert_eq!(
            at_words("see a-word-of-twenty-five-letter it", 12),
            "see\na-word-of-twenty-five-letter\nit"
        );
    }

    #[test]
    fn a_picture_that_has_room_stays_whole() {
        for columns in [30, 61, 100] {
            let picture = (1..200)
                .rev()
                .find_map(|n| crate::output::qr::picture(&"x".repeat(n * 3), columns, 200));
            let picture = picture.expect("a short one has room");
            assert_eq!(at_words(&picture, columns), picture);
        }
    }

    #[test]
    fn a_question_keeps_the_space_for_its_answer() {
        assert_eq!(
            at_words("Is this the one you mean? [y/N] ", 20),
            "Is this the one you\nmean? [y/N] "
        );
    }
}
