//! Entry points (exported C functions) from Rust functions.

/// Exports functions to C. Each argument becomes its C parameters, and the function gets the value
/// that was read from them:
///
/// | argument | C parameters | value |
/// |---|---|---|
/// | `x: Bytes` | `const uint8_t *x, size_t x_len` | `&[u8]` |
/// | `x: Text` | the same | `&str` |
/// | `x: Array<N>` | the same | `&[u8; N]` |
/// | `x: Messages` | `const wraith_bytes_t *x, size_t count` | `Vec<&[u8]>` |
/// | `x: Options<T>` | `const T *x` | `Option<T>` |
/// | `x: Object<T>` | `T x` | an [`Arc`](std::sync::Arc) of the object of the handle |
/// | `x: Locked<T>` | the same | the object, which no other thread uses meanwhile |
/// | `x: Buffer` | `uint8_t *x, size_t x_cap, size_t *x_len` | [`Output`](super::Output) |
/// | `x: Out<T>`, `x: OutOrNull<T>` | `T *x` | [`OutPtr`](super::OutPtr), or an `Option` of one |
/// | `x: &Call` | none | the [`Call`](super::Call), for pointers within structs |
/// | any other | the same | the same |
///
/// A function that returns `Outcome<T>` has a last parameter `T *out` for the value. Nothing is
/// written before the function returns, except by itself.
///
/// `bindings/c/generate` reads the same table.
macro_rules! export {
    ($(
        $(#[$meta:meta])*
        pub fn $name:ident($($args:tt)*) -> Outcome $(<$out:ty>)? $body:block
    )*) => { $(
        $crate::border::export_one! {
            call [[$(#[$meta])*] $name [$($out)?] $body [] []] $($args)*,
        }
    )* };
}

/// Exports one function, which is in brackets with the parameters and the statements so far. Takes
/// the arguments behind it one by one.
macro_rules! export_one {
    ($call:ident $function:tt $arg:ident: Bytes, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function
            [$arg: *const u8, len: usize,] [let $arg = $call.bytes($arg, len)?;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: Text, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function
            [$arg: *const u8, len: usize,] [let $arg = $call.text($arg, len)?;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: Array<$len:ident>, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function
            [$arg: *const u8, len: usize,] [let $arg = $call.array::<$len>($arg, len)?;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: Messages, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function [$arg: *const $crate::bytes::wraith_bytes_t, count: usize,]
            [let $arg = $call.messages($arg, count)?;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: Options<$options:ty>, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function [$arg: *const $options,] [let $arg = $call.options($arg)?;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: Buffer, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function [$arg: *mut u8, cap: usize, len: *mut usize,]
            [let $arg = $call.output($arg, cap, len)?;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: Out<$value:ty>, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function [$arg: *mut $value,] [let $arg = $call.out($arg)?;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: OutOrNull<$value:ty>, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function [$arg: *mut $value,] [let $arg = $call.out_or_null($arg)?;] $($rest)*
        }
    };
    // Handles are looked up after all other arguments were read.
    (
        $call:ident [$meta:tt $name:ident $out:tt $body:block $params:tt $reads:tt]
        $arg:ident: Object<$handle:ident>, $($rest:tt)*
    ) => {
        $crate::border::export_argument! {
            $call [$meta $name $out { let $arg = $handle.get($arg)?; $body } $params $reads]
            [$arg: $handle,] [] $($rest)*
        }
    };
    (
        $call:ident [$meta:tt $name:ident $out:tt $body:block $params:tt $reads:tt]
        $arg:ident: Locked<$handle:ident>, $($rest:tt)*
    ) => {
        $crate::border::export_argument! {
            $call [
                $meta $name $out {
                    let $arg = $handle.hold($arg)?;
                    #[allow(unused_mut)]
                    let mut $arg = $arg.lock()?;
                    $body
                }
                $params $reads
            ]
            [$arg: $handle,] [] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: &Call, $($rest:tt)*) => {
        $crate::border::export_argument! {
            $call $function [] [let $arg = $call;] $($rest)*
        }
    };
    ($call:ident $function:tt $arg:ident: $value:ty, $($rest:tt)*) => {
        $crate::border::export_argument! { $call $function [$arg: $value,] [] $($rest)* }
    };
    (
        $call:ident
        [[$($meta:tt)*] $name:ident [$out:ty] $body:block [$($params:tt)*] [$($reads:tt)*]] $(,)?
    ) => {
        $crate::border::export_one! {
            $call [
                [$($meta)*] $name [] { $call.out(out)?.write_result(|| $body) }
                [$($params)* out: *mut $out,] [$($reads)*]
            ]
        }
    };
    (
        $call:ident
        [[$($meta:tt)*] $name:ident [] $body:block [$($params:tt)*] [$($reads:tt)*]] $(,)?
    ) => {
        $($meta)*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($params)*) -> $crate::status::wraith_status_t {
            $crate::border::entry!(|$call| {
                let _ = $call;
                $($reads)*
                $body
            })
        }
    };
}

/// Adds the C parameters of one argument, and the statement that reads them, to a function.
macro_rules! export_argument {
    (
        $call:ident
        [$meta:tt $name:ident $out:tt $body:block [$($params:tt)*] [$($reads:tt)*]]
        [$($param:tt)*] [$($read:tt)*] $($rest:tt)*
    ) => {
        $crate::border::export_one! {
            $call [$meta $name $out $body [$($params)* $($param)*] [$($reads)* $($read)*]] $($rest)*
        }
    };
}

pub(crate) use {export, export_argument, export_one};
