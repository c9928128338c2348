//! Names of algorithms and policies, and errors for unknown ones.

use thiserror::Error;

/// Error: no algorithm of this kind has the name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {kind} '{name}'")]
pub struct UnknownAlgorithm {
    /// The kind of algorithm: "hash", "cipher" and so on.
    pub kind: &'static str,
    /// The unknown name, truncated to [`NAME_MAX`] characters.
    pub name: String,
}

/// Maximum number of characters of an unknown name that an error repeats.
pub const NAME_MAX: usize = 64;

impl UnknownAlgorithm {
    /// Creates the error for an unknown `name`.
    #[must_use]
    pub fn new(kind: &'static str, name: &str) -> Self {
        Self { kind, name: name.chars().take(NAME_MAX).collect() }
    }
}

/// Returns whether two names are equal, regardless of case and of `-`, `_`, `/` and spaces.
#[must_use]
pub fn is_same_name(a: &str, b: &str) -> bool {
    let plain = |name: &'_ str| {
        let kept: Vec<char> =
            name.chars().filter(|c| !matches!(c, '-' | '_' | ' ' | '/')).collect();
        kept.into_iter().map(|c| c.to_ascii_lowercase())
    };
    plain(a).eq(plain(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_by_more_than_case_and_the_signs_between_words() {
        assert!(is_same_name("SHA3-256", "sha3_256") && is_same_name("SHA-512/256", "sha512 256"));
        assert!(!is_same_name("SHA-256", "SHA-25") && !is_same_name("", "SM3"));
    }

    #[test]
    fn an_unknown_name_is_repeated_shortened() {
        let unknown = UnknownAlgorithm::new("hash", &"ä".repeat(100));
        assert_eq!(unknown.name.chars().count(), NAME_MAX);
        assert!(unknown.to_string().starts_with("unknown hash 'ää"));
    }
}
