//! Names of contacts.
//!
//! Invariant: a [`Name`] has 1 to 40 letters and digits, and `-`, `_` and `.` after the first. So
//! any terminal can show it, and a shell reads it as one word. It is not an option, not a path, and
//! shorter than a NodeId.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Shorter than a NodeId (52 characters), so that neither is mistaken for the other.
const MAX_CHARS: usize = 40;

/// The name of a contact. Names that differ only in case are equal.
#[derive(Clone, Debug)]
pub struct Name(String);

/// Why a text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// It has other characters. The text is escaped.
    #[error("\"{0}\" is no name for a contact: letters and digits, and after the first - _ . too")]
    Characters(String),
    /// It is too long.
    #[error("a contact's name has at most {MAX_CHARS} letters")]
    Length,
}

impl Name {
    /// Returns the name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let mut chars = text.chars();
        let begins = chars.next().is_some_and(char::is_alphanumeric);
        if !begins || !chars.all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            let shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
            return Err(NameError::Characters(shown));
        }
        if text.chars().count() > MAX_CHARS {
            return Err(NameError::Length);
        }
        Ok(Self(text.to_owned()))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.to_lowercase() == other.0.to_lowercase()
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_words_in_any_script() {
        for name in ["anna", "Zoë", "r2-d2", "анна", "花", "a.b_c"] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
        assert_eq!("Anna".parse::<Name>(), "anna".parse::<Name>());
    }

    #[test]
    fn what_could_be_taken_for_something_else_is_no_name() {
        let long = "a".repeat(41);
        for text in ["", "-a", ".a", "a b", "a/b", "a\u{202e}b", "a\u{1b}[2J", "a\n", &long] {
            let why = text.parse::<Name>().unwrap_err().to_string();
            assert!(!why.chars().any(char::is_control), "{why:?}");
        }
        assert!("a".repeat(40).parse::<Name>().is_ok());
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_a_name_shows_as_it_is(text in "\\PC{0,60}|.{0,60}") {
            if let Ok(name) = text.parse::<Name>() {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }
}
