//! Reads a code from a terminal. Tab completes its words.
//!
//! Invariant: when [`read`] returns, the terminal has its former mode, after any key.
//! While it reads, the keys for signals (such as Ctrl-C) arrive as characters.

use std::io::{self, Read, Stdin, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use wraith_discovery::words::{self, WordPosition};

/// Maximum length of a line in bytes: a ticket with every address fits.
const MAX_LINE: usize = 4096;
/// Maximum number of candidate words to show.
const MOST_SHOWN: usize = 8;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub enum LineInput {
    Typed(String),
    /// Ctrl-D on an empty line.
    End,
    /// Ctrl-C.
    Interrupted,
}

/// The effect of Tab on a line.
#[derive(Debug, PartialEq, Eq)]
enum Completion {
    /// The only possible continuation.
    Add(String),
    /// Several candidate words.
    Several(Vec<&'static str>),
    Nothing,
}

/// Reads a line from the terminal on standard input, and shows `question` on standard error.
pub fn read(question: &str) -> io::Result<LineInput> {
    let stdin = io::stdin();
    let _raw = RawMode::enter(&stdin)?;
    let mut err = io::stderr();
    let (mut line, mut keys) = (String::new(), EscapeState::Plain);
    write!(err, "{question}")?;
    loop {
        err.flush()?;
        let next = next_char(&stdin)?;
        if next.is_some_and(|c| keys.consumes(c)) {
            continue;
        }
        match next {
            None => return end(&mut err, LineInput::End),
            Some('\r' | '\n') => return end(&mut err, LineInput::Typed(line.trim().to_owned())),
            Some('\u{3}') => return end(&mut err, LineInput::Interrupted),
            Some('\u{4}') if line.is_empty() => return end(&mut err, LineInput::End),
            Some('\u{8}' | '\u{7f}') => {
                if line.pop().is_some() {
                    write!(err, "\u{8} \u{8}")?;
                }
            }
            // Ctrl-U
            Some('\u{15}') => {
                line.clear();
                write!(err, "\r\x1b[K{question}")?;
            }
            Some('\t') => match complete(&line) {
                Completion::Add(letters) => {
                    write!(err, "{letters}")?;
                    line.push_str(&letters);
                }
                Completion::Several(words) => {
                    write!(err, "\r\n{}\r\n{question}{line}", words.join("  "))?;
                }
                Completion::Nothing => write!(err, "\u{7}")?,
            },
            Some(c) if !c.is_control() && line.len() < MAX_LINE => {
                line.push(c);
                write!(err, "{c}")?;
            }
            Some(_) => {}
        }
    }
}

/// Parser state within the escape sequence of a key without a character of its own, such as an
/// arrow (ECMA-48 §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscapeState {
    Plain,
    /// After ESC: the Escape key itself, or the start of a sequence.
    Escape,
    /// After ESC [: until a final byte.
    Control,
    /// After ESC O: one more character.
    Single,
}

impl EscapeState {
    /// Returns whether this character is part of a sequence. Control characters such as Enter and
    /// Ctrl-C never are.
    fn consumes(&mut self, c: char) -> bool {
        let before = *self;
        *self = match (before, c) {
            (_, '\u{1b}') => Self::Escape,
            (Self::Escape, '[') => Self::Control,
            (Self::Escape, 'O') => Self::Single,
            (Self::Control, ' '..='?') => Self::Control,
            _ => Self::Plain,
        };
        match before {
            Self::Plain => c == '\u{1b}',
            Self::Escape => *self != Self::Plain,
            Self::Control | Self::Single => !c.is_control() || c == '\u{1b}',
        }
    }
}

fn end(err: &mut impl Write, line: LineInput) -> io::Result<LineInput> {
    write!(err, "\r\n")?;
    err.flush()?;
    Ok(line)
}

/// Reads the next character; None at the end of input. Invalid UTF-8 becomes a replacement
/// character.
fn next_char(mut stdin: &Stdin) -> io::Result<Option<char>> {
    let mut bytes = [0; 4];
    for len in 1..=bytes.len() {
        if stdin.read(&mut bytes[len - 1..len])? == 0 {
            return Ok(None);
        }
        if let Ok(text) = std::str::from_utf8(&bytes[..len]) {
            return Ok(text.chars().next());
        }
    }
    Ok(Some(char::REPLACEMENT_CHARACTER))
}

/// Returns the completion of a partly typed code.
fn complete(line: &str) -> Completion {
    let mut parts = line.split(['-', ' ']);
    let number = parts.next().unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Completion::Nothing;
    }
    // A code may end with its second word, so the user types the separator behind it.
    let (position, typed, after) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (None, ..) => return Completion::Add("-".into()),
        (Some(first), None, ..) => (WordPosition::First, first, "-"),
        (Some(_), Some(second), None, _) => (WordPosition::Second, second, ""),
        (Some(_), Some(_), Some(third), None) => (WordPosition::Third, third, ""),
        _ => return Completion::Nothing,
    };
    let typed = typed.to_lowercase();
    let fitting = words::beginning_with(position, &typed);
    match fitting {
        [] => Completion::Nothing,
        [only] => Completion::Add(format!("{}{after}", &only[typed.len()..])),
        [first, .., last] => {
            // In a sorted list, the common prefix of the first and the last word is common to all.
            let common = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
            if common > typed.len() {
                Completion::Add(first[typed.len()..common].to_owned())
            } else {
                Completion::Several(fitting.iter().take(MOST_SHOWN).copied().collect())
            }
        }
    }
}

/// The terminal in raw mode. Drop restores the former mode.
struct RawMode<'a> {
    stdin: &'a Stdin,
    before: Termios,
}

impl<'a> RawMode<'a> {
    fn enter(stdin: &'a Stdin) -> io::Result<Self> {
        let before = tcgetattr(stdin)?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin, OptionalActions::Now, &raw)?;
        Ok(Self { stdin, before })
    }
}

impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.stdin, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_a_character_leave_none() {
        let left = |typed: &str| {
            let mut keys = EscapeState::Plain;
            typed.chars().filter(|c| !keys.consumes(*c)).collect::<String>()
        };
        for key in ["\x1b[D", "\x1b[1;5C", "\x1bOA", "\x1b[3~", "\x1b[200~", "\x1b", "\x1b\x1b[A"] {
            assert_eq!(left(&format!("7-{key}5")), "7-5", "{key:?}");
        }
        for stop in ["\r", "\u{3}"] {
            for key in ["\x1b", "\x1b[", "\x1bO", "\x1b[1;"] {
                assert_eq!(left(&format!("{key}{stop}")), stop, "{key:?}");
            }
        }
    }

    fn add(letters: &str) -> Completion {
        Completion::Add(letters.into())
    }

    #[test]
    fn tab_leads_from_the_number_to_the_end() {
        assert_eq!(complete("7"), add("-"));
        assert_eq!(complete("7-crat"), add("er-"));
        assert_eq!(complete("7 CRAT"), add("er-"));
        assert_eq!(complete("7-crater-lemo"), add("n"));
        assert_eq!(complete("7-crater-lemon"), add(""));
        assert_eq!(complete("7-crater-lemon-crat"), add("er"));
    }

    #[test]
    fn several_words_are_shown_and_nonsense_is_not_completed() {
        match complete("7-c") {
            Completion::Several(words) => assert_eq!(words.len(), MOST_SHOWN),
            other => panic!("{other:?}"),
        }
        for nothing in ["", "x", "7-qqqq", "7-a-b-c-d", "wraith:abc", "7-é"] {
            assert_eq!(complete(nothing), Completion::Nothing, "{nothing}");
        }
    }

    #[test]
    fn every_word_is_reached_by_its_first_four_letters() {
        for word in words::list(WordPosition::First) {
            assert_eq!(complete(&format!("7-{}", &word[..4])), add(&format!("{}-", &word[4..])));
        }
    }
}
