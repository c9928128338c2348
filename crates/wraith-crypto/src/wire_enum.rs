//! Enums that are one byte on the wire.

/// Defines an enum of one byte, with its conversions. Each number is written once.
///
/// ```
/// wraith_crypto::wire_enum! {
///     /// A colour.
///     pub enum Colour {
///         /// Red.
///         Red = 1,
///         /// Blue.
///         Blue = 7,
///     }
/// }
/// assert_eq!(Colour::Blue.byte(), 7);
/// assert_eq!((Colour::from_byte(1), Colour::from_byte(2)), (Some(Colour::Red), None));
/// ```
#[macro_export]
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
            pub const fn from_byte(byte: u8) -> ::core::option::Option<Self> {
                match byte {
                    $( $byte => ::core::option::Option::Some(Self::$variant), )+
                    _ => ::core::option::Option::None,
                }
            }
        }
    };
}
