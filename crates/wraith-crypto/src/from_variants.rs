//! Conversion of contents into an enum.

/// Implements `From` for variants with a single unnamed field:
///
/// ```
/// enum Name {
///     Number(u32),
///     Text(String),
/// }
/// wraith_crypto::from_variants!(Name { u32 => Number, String => Text });
/// assert!(matches!(Name::from(7), Name::Number(7)));
/// assert!(matches!(String::from("seven").into(), Name::Text(text) if text == "seven"));
/// ```
#[macro_export]
macro_rules! from_variants {
    ($name:ident { $($content:ty => $variant:ident),+ $(,)? }) => { $(
        impl ::core::convert::From<$content> for $name {
            fn from(content: $content) -> Self {
                Self::$variant(content)
            }
        }
    )+ };
}
