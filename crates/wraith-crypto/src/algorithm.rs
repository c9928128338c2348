//! Common properties of algorithms of every kind: a name, the standard that defines it, and the
//! implementation.
//!
//! Each kind has its own enum `Algorithm`, defined by `algorithms!`. Its names are the ones in the
//! program's arguments, in key files and in tables.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

/// Implementation of an algorithm on this processor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// AWS-LC, the C library behind most algorithms.
    AwsLc,
    /// Another library, by name.
    Library(&'static str),
    /// Our own code, and the processor features that it uses: "AVX-512, GFNI", or "portable".
    Own(Cow<'static, str>),
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AwsLc => f.write_str("AWS-LC"),
            Self::Library(name) => f.write_str(name),
            Self::Own(features) => write!(f, "own ({features})"),
        }
    }
}

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
    pub(crate) fn new(kind: &'static str, name: &str) -> Self {
        Self { kind, name: name.chars().take(NAME_MAX).collect() }
    }
}

/// Returns whether two names are equal, regardless of case and of `-`, `_`, `/` and spaces.
pub(crate) fn is_same_name(a: &str, b: &str) -> bool {
    let plain = |name: &'_ str| {
        let kept: Vec<char> =
            name.chars().filter(|c| !matches!(c, '-' | '_' | ' ' | '/')).collect();
        kept.into_iter().map(|c| c.to_ascii_lowercase())
    };
    plain(a).eq(plain(b))
}

/// Defines the enum of one kind of algorithm. `$kind` is its name in errors; each line is a
/// variant, its name and its standard.
macro_rules! algorithms {
    (
        $(#[$meta:meta])*
        $kind:literal;
        $( $(#[$variant_meta:meta])* $variant:ident = $name:literal, $standard:literal; )+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            $( $(#[$variant_meta])* #[doc = concat!($name, " (", $standard, ").")] $variant, )+
        }

        impl Algorithm {
            /// Every algorithm of this kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name. `FromStr` accepts it in any case, with or without `-`, `_`, `/`
            /// and spaces.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the standard that defines it.
            #[must_use]
            pub const fn standard(self) -> &'static str {
                match self { $(Self::$variant => $standard),+ }
            }
        }

        impl ::std::fmt::Display for Algorithm {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for Algorithm {
            type Err = $crate::UnknownAlgorithm;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|each| $crate::algorithm::is_same_name(each.name(), name))
                    .ok_or_else(|| $crate::UnknownAlgorithm::new($kind, name))
            }
        }
    };
}

pub(crate) use algorithms;

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
