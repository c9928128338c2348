//! Types of the C API: enums with numbers, and structs that the caller fills.
//!
//! `bindings/c/generate` reads the same definitions.

/// Defines an enum, and `of`: the variant of a number, or that of a value of the library.
macro_rules! c_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident $(of $source:ty, else $other:ident)? {
            $($(#[$doc:meta])* $variant:ident = $number:literal $(: $pattern:pat)?,)*
        }
    ) => {
        $(#[$meta])*
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant = $number,)* }

        $crate::border::c_enum_of! {
            $name [$($source, $other)?] $($variant = $number $(: $pattern)?,)*
        }
    };
}

/// Defines `of` for `c_enum!`.
macro_rules! c_enum_of {
    ($name:ident [] $($variant:ident = $number:literal,)*) => {
        impl $name {
            #[allow(dead_code, reason = "some enums are only returned")]
            fn of(number: u32) -> Option<Self> {
                [$(Self::$variant),*].into_iter().find(|variant| *variant as u32 == number)
            }
        }
    };
    (
        $name:ident [$source:ty, $other:ident]
        $($variant:ident = $number:literal $(: $pattern:pat)?,)*
    ) => {
        impl $name {
            fn of(value: &$source) -> Self {
                match value {
                    $($($pattern => Self::$variant,)?)*
                    _ => Self::$other,
                }
            }
        }
    };
}

/// Defines a struct of [`Plain`](super::Plain) fields, which therefore is `Plain`.
macro_rules! c_struct {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        // SAFETY: the type is `repr(C)`, and `assert_plain` accepts the type of each field.
        unsafe impl $crate::border::Plain for $name {}
        const _: () = { $($crate::border::assert_plain::<$type>();)* };
    };
}

pub(crate) use {c_enum, c_enum_of, c_struct};
