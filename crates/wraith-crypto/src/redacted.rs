//! `Debug` for types that hold secrets.

/// Implements `Debug` with the named fields only. A value whose field has another name or place is
/// an expression: `redacted_debug!(|it: Key| suite: it.inner.suite)`. Generic parameters come
/// first: `redacted_debug!([T] |it: Pair<T>| len: it.len)`.
#[doc(hidden)]
#[macro_export]
macro_rules! redacted_debug {
    ($name:ident $(, $field:ident)*) => {
        $crate::redacted_debug!(|it: $name| $($field: it.$field),*);
    };
    (
        $([$($generics:tt)*])? |$it:ident: $name:ident $(<$($argument:tt),+>)?|
        $($field:ident: $value:expr),*
    ) => {
        impl $(<$($generics)*>)? ::std::fmt::Debug for $name $(<$($argument),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                #[allow(unused_variables, reason = "without fields")]
                let $it = self;
                f.debug_struct(::std::stringify!($name))
                    $(.field(::std::stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #[allow(dead_code, reason = "fields that must not be shown")]
    struct Key<T> {
        name: &'static str,
        secret: T,
    }

    redacted_debug!([T] |it: Key<T>| name: it.name, letters: it.name.len());

    #[test]
    fn only_the_named_fields_are_shown() {
        let key = Key { name: "host", secret: [7; 32] };
        assert_eq!(format!("{key:?}"), "Key { name: \"host\", letters: 4, .. }");
    }
}
