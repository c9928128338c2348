//! The text form of a code, such as `7-crater-lemon`: a nameplate and two secret words, or three
//! words for several receivers.
//!
//! Two words hold 20 bits. That suffices only because the words cannot be tested offline. The
//! exchange ([`super::pake`]) reveals the result of one guess, and after a wrong guess the code is
//! no longer valid. If an attacker guesses right, the attacker is served instead of a receiver. A
//! single receiver notices that. Several receivers do not, and their code is valid for longer, so
//! it has three words, which hold 30 bits.
//!
//! A long code, such as `crater-lemon-forest-piano-silver-velvet`, has no number and six words,
//! alternately from both lists. It needs 60 bits, because guesses can be tested offline
//! ([`super::long`]). Text with a lost or swapped word is not a code.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::place::MAX_NAMEPLATE;
use crate::words::{self, WORDS_PER_LIST, WordPosition};

/// Longest text accepted as a code, with room for spaces.
const MAX_TEXT_LEN: usize = 80;

/// Number of words in a long code.
const LONG_WORDS: usize = 6;

/// A code: the meeting point and the secret words.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    Short {
        nameplate: u32,
        words: [&'static str; 2],
        /// Third word of a code for several receivers.
        third: Option<&'static str>,
    },
    Long([&'static str; LONG_WORDS]),
}

/// Reason why a text is not a code. Each reason is detected before anything is sent, so it does not
/// cost a guess.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// It does not start with a nameplate, a number from 1 to [`MAX_NAMEPLATE`].
    #[error("a code begins with a number, such as 7-crater-lemon")]
    NoNameplate,
    /// Fewer than two words, or more than three.
    #[error(
        "a code is a number and two words, such as 7-crater-lemon; a code for several receivers has three words"
    )]
    WrongCount,
    /// Words without a number, but not six.
    #[error(
        "a code without a number has six words, such as crater-lemon-forest-piano-silver-velvet"
    )]
    WrongLongCount,
    /// A word that is not in the list for its position.
    #[error("no code has the word \"{typed}\" there{}", meant(nearest))]
    UnknownWord {
        /// The typed word in lower case.
        typed: String,
        /// Similar words.
        nearest: Vec<&'static str>,
    },
}

fn meant(nearest: &[&str]) -> String {
    match nearest {
        [] => String::new(),
        [word] => format!("; the nearest is {word}"),
        words => format!("; the nearest are {}", words.join(", ")),
    }
}

impl Code {
    /// Makes a code for one receiver from a nameplate and 4 random bytes, which select two words.
    pub fn new(nameplate: u32, [a, b, c, d]: [u8; 4]) -> Self {
        let words = [drawn(WordPosition::First, [a, b]), drawn(WordPosition::Second, [c, d])];
        Self(Form::Short { nameplate, words, third: None })
    }

    /// Makes a code for several receivers. The 6 random bytes select three words.
    pub fn for_several(nameplate: u32, [a, b, c, d, e, f]: [u8; 6]) -> Self {
        let words = [drawn(WordPosition::First, [a, b]), drawn(WordPosition::Second, [c, d])];
        Self(Form::Short { nameplate, words, third: Some(drawn(WordPosition::Third, [e, f])) })
    }

    /// Makes a long code. The 12 random bytes select six words.
    pub fn long(random: [u8; 2 * LONG_WORDS]) -> Self {
        let (random, _) = random.as_chunks();
        Self(Form::Long(std::array::from_fn(|at| drawn(position_in_long_code(at), random[at]))))
    }

    /// Reports whether this is a short code for several receivers.
    pub const fn is_for_several(&self) -> bool {
        matches!(self.0, Form::Short { third: Some(_), .. })
    }

    /// Reports whether this is a long code, which uses record stores instead of a server.
    pub const fn is_long(&self) -> bool {
        matches!(self.0, Form::Long(_))
    }

    /// Returns the nameplate, which is public. A long code returns 0, which is not a nameplate.
    pub const fn nameplate(&self) -> u32 {
        match self.0 {
            Form::Short { nameplate, .. } => nameplate,
            Form::Long(_) => 0,
        }
    }

    /// Returns the words, which are the secret.
    pub(crate) fn secret(&self) -> Zeroizing<String> {
        let mut secret = Zeroizing::new(String::with_capacity(MAX_TEXT_LEN));
        for (at, word) in self.words().enumerate() {
            secret.push_str(if at > 0 { "-" } else { "" });
            secret.push_str(word);
        }
        secret
    }

    fn words(&self) -> impl Iterator<Item = &'static str> {
        let (words, third): (&[&'static str], _) = match &self.0 {
            Form::Short { words, third, .. } => (words, *third),
            Form::Long(words) => (words, None),
        };
        words.iter().copied().chain(third)
    }

    /// Reports whether a text starts like a code, so that it was not meant as a ticket or a
    /// command.
    pub fn looks_like(text: &str) -> bool {
        text.trim_start().starts_with(|c: char| c.is_ascii_digit()) || Self::looks_long(text)
    }

    /// Reports whether a text has six words of which most fit their positions. The name of a file
    /// with six words does not.
    fn looks_long(text: &str) -> bool {
        if text.len() > MAX_TEXT_LEN {
            return false;
        }
        let text = Zeroizing::new(text.to_lowercase());
        let known =
            |(at, part)| usize::from(words::find(position_in_long_code(at), part).is_some());
        let count = parts(&text).count();
        count == LONG_WORDS && parts(&text).enumerate().map(known).sum::<usize>() >= MOST_WORDS
    }
}

/// Words of a long code that must be right if the other words are to be treated as typing errors.
const MOST_WORDS: usize = 4;

/// The lists alternate.
const fn position_in_long_code(at: usize) -> WordPosition {
    if at.is_multiple_of(2) { WordPosition::First } else { WordPosition::Second }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty())
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_long() {
            write!(f, "{}-", self.nameplate())?;
        }
        f.write_str(&self.secret())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}-secret)", self.nameplate())
    }
}

impl FromStr for Code {
    type Err = CodeError;

    /// Parses typed input: any case, any separators other than letters and digits, and abbreviated
    /// words.
    fn from_str(text: &str) -> Result<Self, CodeError> {
        if text.len() > MAX_TEXT_LEN {
            return Err(CodeError::WrongCount);
        }
        let text = Zeroizing::new(text.to_lowercase());
        let mut parts = parts(&text).peekable();
        match parts.peek() {
            Some(first) if !first.starts_with(|c: char| c.is_ascii_digit()) => {
                long(&parts.collect::<Vec<_>>())
            }
            _ => short(parts),
        }
    }
}

fn short<'a>(mut parts: impl Iterator<Item = &'a str>) -> Result<Code, CodeError> {
    let nameplate = parts.next().and_then(|part| part.parse().ok());
    let nameplate =
        nameplate.filter(|n| (1..=MAX_NAMEPLATE).contains(n)).ok_or(CodeError::NoNameplate)?;
    let (Some(first), Some(second), third, None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(CodeError::WrongCount);
    };
    let words = [word(WordPosition::First, first)?, word(WordPosition::Second, second)?];
    let third = third.map(|third| word(WordPosition::Third, third)).transpose()?;
    Ok(Code(Form::Short { nameplate, words, third }))
}

fn long(parts: &[&str]) -> Result<Code, CodeError> {
    let parts: &[&str; LONG_WORDS] = match parts.try_into() {
        Ok(parts) => parts,
        // Two or three words: the number of a short code is missing.
        Err(_) if parts.len() <= 3 => return Err(CodeError::NoNameplate),
        Err(_) => return Err(CodeError::WrongLongCount),
    };
    let mut words = [""; LONG_WORDS];
    for (at, part) in parts.iter().enumerate() {
        words[at] = word(position_in_long_code(at), part)?;
    }
    Ok(Code(Form::Long(words)))
}

/// 2^16 is a multiple of the number of words, so all are equally likely.
fn drawn(position: WordPosition, random: [u8; 2]) -> &'static str {
    words::list(position)[usize::from(u16::from_be_bytes(random)) % WORDS_PER_LIST]
}

fn word(position: WordPosition, typed: &str) -> Result<&'static str, CodeError> {
    words::find(position, typed).ok_or_else(|| CodeError::UnknownWord {
        typed: typed.to_owned(),
        nearest: words::nearest(position, typed),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Code {
        Code::new(7, [1, 2, 3, 4])
    }

    fn example_words() -> [&'static str; 2] {
        example().words().collect::<Vec<_>>().try_into().unwrap()
    }

    proptest! {
        #[test]
        fn every_code_survives_text(nameplate in 1..=MAX_NAMEPLATE, random: [u8; 6], several: bool) {
            let [a, b, c, d, ..] = random;
            let code = match several {
                true => Code::for_several(nameplate, random),
                false => Code::new(nameplate, [a, b, c, d]),
            };
            prop_assert_eq!(code.to_string().split('-').count(), if several { 4 } else { 3 });
            let text = code.to_string();
            prop_assert_eq!(text.parse(), Ok(code.clone()));
            prop_assert_eq!(text.to_uppercase().replace('-', "  ").parse(), Ok(code.clone()));
            let short: Vec<&str> = text.split('-').map(|part| &part[..part.len().min(4)]).collect();
            // Four digits may be another nameplate, so only words are abbreviated.
            let short = format!(" {nameplate}_{}\n", short[1..].join("."));
            prop_assert_eq!(short.parse(), Ok(code));
        }

        #[test]
        fn every_long_code_survives_text(random: [u8; 12]) {
            let code = Code::long(random);
            let text = code.to_string();
            prop_assert!(code.is_long() && Code::looks_like(&text));
            prop_assert_eq!(text.split('-').count(), 6);
            prop_assert_eq!(text.parse(), Ok(code.clone()));
            prop_assert_eq!(text.to_uppercase().replace('-', "  ").parse(), Ok(code.clone()));
            let short: Vec<&str> = text.split('-').map(|part| &part[..4]).collect();
            prop_assert_eq!(format!(" {}\n", short.join(". ")).parse(), Ok(code));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,90}", nameplate: u32, word in "[a-zé]{0,9}") {
            let _ = text.parse::<Code>();
            let _ = format!("{nameplate}-{word}-{word}").parse::<Code>();
        }
    }

    #[test]
    fn all_pairs_of_words_can_come() {
        let last: Vec<_> = Code::new(1, [0xff; 4]).words().collect();
        assert_eq!(
            last,
            [words::list(WordPosition::First)[1023], words::list(WordPosition::Second)[1023]]
        );
        let first: Vec<_> = Code::new(1, [0; 4]).words().collect();
        assert_eq!(
            first,
            [words::list(WordPosition::First)[0], words::list(WordPosition::Second)[0]]
        );
    }

    #[test]
    fn invalid_codes_are_rejected_with_the_reason() {
        let parse = |text: &str| text.parse::<Code>().unwrap_err();
        let [first, second] = example_words();
        assert_eq!(parse(""), CodeError::NoNameplate);
        assert_eq!(parse("crater-lemon"), CodeError::NoNameplate);
        for nameplate in ["0", "1000000", "99999999999", "-1x"] {
            assert_eq!(parse(&format!("{nameplate}-{first}-{second}")), CodeError::NoNameplate);
        }
        assert_eq!(parse(&format!("7-{first}")), CodeError::WrongCount);
        let third = parse(&format!("7-{first}-{second}-{second}"));
        assert!(matches!(third, CodeError::UnknownWord { typed, .. } if typed == second));
        assert_eq!(parse(&format!("7-{first}-{second}-{first}-{second}")), CodeError::WrongCount);
        assert_eq!(parse(&"7 ".repeat(100)), CodeError::WrongCount);
    }

    #[test]
    fn an_unknown_word_is_reported_with_the_nearest_words() {
        let [first, second] = example_words();
        let slip = format!("{}q", &first[..first.len() - 1]);
        match format!("7-{slip}-{second}").parse::<Code>() {
            Err(CodeError::UnknownWord { typed, nearest }) => {
                assert_eq!(typed, slip);
                assert!(nearest.contains(&first), "{nearest:?}");
            }
            // The input may be the prefix of another word, but no word fits with a `q` appended.
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_incomplete_or_reordered_long_code_is_reported() {
        let text = Code::long([5; 12]).to_string();
        let words: Vec<&str> = text.split('-').collect();
        let parse = |words: &[&str]| words.join("-").parse::<Code>().unwrap_err();
        assert_eq!(parse(&words[..5]), CodeError::WrongLongCount);
        assert_eq!(parse(&words[..2]), CodeError::NoNameplate);
        assert_eq!(parse(&[&words[..], &words[..1]].concat()), CodeError::WrongLongCount);
        let mut swapped = words.clone();
        swapped.swap(2, 3);
        assert!(matches!(parse(&swapped), CodeError::UnknownWord { .. }));
    }

    #[test]
    fn the_example_of_a_long_code_is_one() {
        let example = CodeError::WrongLongCount.to_string();
        let code = example.split(' ').find(|word| word.contains('-')).unwrap();
        assert!(code.parse::<Code>().unwrap().is_long());
    }

    #[test]
    fn other_texts_do_not_look_like_a_long_code() {
        let text = Code::long([5; 12]).to_string();
        let slip = text.replacen(|c: char| c.is_ascii_lowercase(), "q", 1);
        assert!(Code::looks_like(&slip), "one slip is told as one: {slip}");
        for other in
            ["holiday-photos-of-the-year-2024", "wraith:abc", "notes.txt", "a b c d e f", ""]
        {
            assert!(!Code::looks_like(other), "{other}");
        }
    }

    #[test]
    fn debug_output_does_not_show_the_words() {
        assert_eq!(format!("{:?}", example()), "Code(7-secret)");
    }
}
