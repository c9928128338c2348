//! Enums that are one byte on the wire.

/// Defines an enum of one byte. Each number is written once, for both directions.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident { $( $(#[$doc:meta])* $variant:ident = $byte:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        $visibility enum $name { $( $(#[$doc])* $variant = $byte, )+ }

        impl $name {
            /// Returns the byte used on the wire.
            pub const fn byte(self) -> u8 {
                self as u8
            }

            /// Returns the variant for `byte`, if there is one.
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $( $byte => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use wire_enum;
