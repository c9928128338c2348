//! A code such as `7-crater-lemon`: a nameplate, a number that says where to meet, and two words that are the secret; of a code for
//! several receivers three.
//!
//! Two words are worth 20 bits. That is enough only because nobody can try them out: the exchange they are used in
//! ([`super::pake`]) shows a guess to be right or wrong once, and a wrong one ends the code. A right guess is missed by the one
//! receiver whose place it took, but not by several, and their code is waited with for longer: so theirs is worth 30 bits.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::place::MAX_NAMEPLATE;
use crate::words::{self, Place, WORDS_PER_LIST};

/// Longest text that can be a code, with room for spaces.
const MAX_TEXT_LEN: usize = 80;

/// Where two sides meet, and what they prove to each other there.
#[derive(Clone, PartialEq, Eq)]
pub struct Code {
    nameplate: u32,
    words: [&'static str; 2],
    /// Of a code for several receivers.
    third: Option<&'static str>,
}

/// Why a text is not a code. None of these costs a guess: they are known before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// It does not begin with a nameplate, a number from 1 to [`MAX_NAMEPLATE`].
    #[error("a code begins with a number, as 7-crater-lemon does")]
    NoNameplate,
    /// Fewer than two words, or more than three.
    #[error(
        "a code is a number and two words, as 7-crater-lemon is, or three if it is for several receivers"
    )]
    WrongCount,
    /// A word that no code has at this place.
    #[error("no code has the word \"{typed}\" there{}", meant(nearest))]
    UnknownWord {
        /// What was typed, in lower case.
        typed: String,
        /// Words that are like it.
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
    /// A code for one receiver with this nameplate, its two words taken from 4 random bytes.
    pub fn new(nameplate: u32, random: [u8; 4]) -> Self {
        let [a, b, c, d] = random;
        let words = [drawn(Place::First, [a, b]), drawn(Place::Second, [c, d])];
        Self { nameplate, words, third: None }
    }

    /// A code for several receivers, its three words taken from 6 random bytes.
    pub fn for_several(nameplate: u32, random: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = random;
        let third = Some(drawn(Place::Third, [e, f]));
        Self { third, ..Self::new(nameplate, [a, b, c, d]) }
    }

    /// Whether it is one for several receivers.
    pub const fn is_for_several(&self) -> bool {
        self.third.is_some()
    }

    /// Where to meet. It is no secret.
    pub const fn nameplate(&self) -> u32 {
        self.nameplate
    }

    /// The secret.
    pub(crate) fn secret(&self) -> Zeroizing<String> {
        let mut secret = Zeroizing::new(String::with_capacity(MAX_TEXT_LEN));
        for (at, word) in self.words.iter().chain(&self.third).enumerate() {
            secret.push_str(if at > 0 { "-" } else { "" });
            secret.push_str(word);
        }
        secret
    }

    /// Whether a text begins as a code does, so that it was meant to be one and not a ticket or a command.
    pub fn looks_like(text: &str) -> bool {
        text.trim_start().starts_with(|c: char| c.is_ascii_digit())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.words;
        write!(f, "{}-{first}-{second}", self.nameplate)?;
        self.third.map_or(Ok(()), |third| write!(f, "-{third}"))
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}-secret)", self.nameplate)
    }
}

impl FromStr for Code {
    type Err = CodeError;

    /// Takes what people type: any case, anything but letters and digits between the parts, and of a word only its
    /// beginning.
    fn from_str(text: &str) -> Result<Self, CodeError> {
        if text.len() > MAX_TEXT_LEN {
            return Err(CodeError::WrongCount);
        }
        let text = Zeroizing::new(text.to_lowercase());
        let mut parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        let nameplate = parts.next().and_then(|part| part.parse().ok());
        let nameplate =
            nameplate.filter(|n| (1..=MAX_NAMEPLATE).contains(n)).ok_or(CodeError::NoNameplate)?;
        let (Some(first), Some(second), third, None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(CodeError::WrongCount);
        };
        let words = [word(Place::First, first)?, word(Place::Second, second)?];
        let third = third.map(|third| word(Place::Third, third)).transpose()?;
        Ok(Self { nameplate, words, third })
    }
}

/// The number of words divides 2^16, so all are equally likely.
fn drawn(place: Place, random: [u8; 2]) -> &'static str {
    words::list(place)[usize::from(u16::from_be_bytes(random)) % WORDS_PER_LIST]
}

fn word(place: Place, typed: &str) -> Result<&'static str, CodeError> {
    words::find(place, typed).ok_or_else(|| CodeError::UnknownWord {
        typed: typed.to_owned(),
        nearest: words::nearest(place, typed),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Code {
        Code::new(7, [1, 2, 3, 4])
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
            // Four digits may be another nameplate, so it stays whole.
            let short = format!(" {nameplate}_{}\n", short[1..].join("."));
            prop_assert_eq!(short.parse(), Ok(code));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,90}", nameplate: u32, word in "[a-zé]{0,9}") {
            let _ = text.parse::<Code>();
            let _ = format!("{nameplate}-{word}-{word}").parse::<Code>();
        }
    }

    #[test]
    fn all_pairs_of_words_can_come() {
        let last = Code::new(1, [0xff; 4]).words;
        assert_eq!(last, [words::list(Place::First)[1023], words::list(Place::Second)[1023]]);
        let first = Code::new(1, [0; 4]).words;
        assert_eq!(first, [words::list(Place::First)[0], words::list(Place::Second)[0]]);
    }

    #[test]
    fn what_is_no_code_says_why() {
        let parse = |text: &str| text.parse::<Code>().unwrap_err();
        let [first, second] = example().words;
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
    fn a_word_that_does_not_exist_is_told_with_the_ones_that_do() {
        let [first, second] = example().words;
        let slip = format!("{}q", &first[..first.len() - 1]);
        match format!("7-{slip}-{second}").parse::<Code>() {
            Err(CodeError::UnknownWord { typed, nearest }) => {
                assert_eq!(typed, slip);
                assert!(nearest.contains(&first), "{nearest:?}");
            }
            // Then it was the beginning of another word, which no word with a q at its end is.
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn debug_output_does_not_show_the_words() {
        assert_eq!(format!("{:?}", example()), "Code(7-secret)");
    }
}
