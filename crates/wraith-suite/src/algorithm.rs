//! Common properties of algorithms of every kind: a name, the standard that defines it, and the
//! implementation.
//!
//! Each kind has its own enum `Algorithm`, defined by `algorithms!`. Its names are the ones in the
//! program's arguments, in key files and in tables.

use std::borrow::Cow;
use std::fmt;

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

impl Backend {
    /// Returns our own code with these processor features, or `library` without them.
    pub(crate) fn own_or(features: Option<&'static str>, library: Self) -> Self {
        features.map_or(library, |features| Self::Own(features.into()))
    }

    /// Returns our own code with these processor features, or our portable code without them.
    pub(crate) fn own(features: Option<&'static str>) -> Self {
        Self::Own(features.unwrap_or("portable").into())
    }
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

/// Defines the enum of one kind of algorithm. `$kind` is its name in errors. Each block has a
/// standard and its algorithms: variants with their names.
macro_rules! algorithms {
    (
        $(#[$meta:meta])*
        $kind:literal;
        $( $standard:literal { $( $(#[$variant_meta:meta])* $variant:ident = $name:literal, )+ } )+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            $($( $(#[$variant_meta])* #[doc = concat!($name, " (", $standard, ").")] $variant, )+)+
        }

        impl Algorithm {
            /// Every algorithm of this kind.
            pub const ALL: &'static [Self] = &[$($(Self::$variant),+),+];

            /// Returns the name. `FromStr` accepts it in any case, with or without `-`, `_`, `/`
            /// and spaces.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$variant => $name),+),+ }
            }

            /// Returns the standard that defines it.
            #[must_use]
            pub const fn standard(self) -> &'static str {
                match self { $( $(Self::$variant)|+ => $standard ),+ }
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
                    .find(|each| ::wraith_crypto::names::is_same_name(each.name(), name))
                    .ok_or_else(|| $crate::UnknownAlgorithm::new($kind, name))
            }
        }
    };
}

pub(crate) use algorithms;
