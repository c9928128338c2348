//! Names of contacts.
//!
//! Invariant: a [`ContactName`] has 1 to 40 letters and digits, and `-`, `_` and `.` after the
//! first. So any terminal can show it, and a shell reads it as one word. It is not an option, not a
//! path, and shorter than a NodeId.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Shorter than a NodeId (52 characters), so that neither is mistaken for the other.
const MAX_CHARS: usize = 40;

/// The name of a contact. Names that differ only in case are equal.
#[derive(Clone, Debug)]
pub struct ContactName(String);

/// Why a text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ContactNameError {
    /// It has other characters. The text is escaped.
    #[error("\"{0}\" is no name for a contact: letters and digits, and after the first - _ . too")]
    Characters(String),
    /// It is too long.
    #[error("a contact's name has at most {MAX_CHARS} letters")]
    Length,
}

impl ContactName {
    /// Returns the name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContactName {
    type Err = ContactNameError;

    fn from_str(text: &str) -> Result<Self, ContactNameError> {
        let mut chars = text.chars();
        let begins = chars.next().is_some_and(char::is_alphanumeric);
        if !begins || !chars.all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            let shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
            return Err(ContactNameError::Characters(shown));
        }
        if text.chars().count() > MAX_CHARS {
            return Err(ContactNameError::Length);
        }
        Ok(Self(text.to_owned()))
    }
}

impl PartialEq for ContactName {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.to_lowercase() == other.0.to_lowercase()
    }
}

impl Eq for ContactName {}

impl fmt::Display for ContactName {
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
            assert_eq!(name.parse::<ContactName>().unwrap().as_str(), name);
        }
        assert_eq!("Anna".parse::<ContactName>(), "anna".parse::<ContactName>());
    }

    #[test]
    fn ambiguous_texts_are_refused_as_names() {
        let long = "a".repeat(41);
        for text in ["", "-a", ".a", "a b", "a/b", "a\u{202e}b", "a\u{1b}[2J", "a\n", &long] {
            let why = text.parse::<ContactName>().unwrap_err().to_string();
            assert!(!why.chars().any(char::is_control), "{why:?}");
        }
        assert!("a".repeat(40).parse::<ContactName>().is_ok());
    }

    proptest! {
        #[test]
        fn any_text_parses_without_panic_and_a_name_displays_unchanged(text in "\\PC{0,60}|.{0,60}") {
            if let Ok(name) = text.parse::<ContactName>() {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }
}
