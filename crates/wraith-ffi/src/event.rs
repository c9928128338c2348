//! Events of a transfer, pulled one at a time. `bindings/events.rs` lists them.

use tokio::sync::Mutex;

/// Defines the enums of values in events.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident $c:ident {
        $($(#[$value_doc:meta])* $value:ident $number:ident = $n:literal: $pattern:pat,)*
    })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
        pub enum $name { $($(#[$value_doc])* $value,)* }

        impl From<&wraith::$name> for $name {
            fn from(value: &wraith::$name) -> Self {
                match value { $($pattern => Self::$value,)* }
            }
        }
    )* };
}

/// Converts the value of a field, by its place in C.
macro_rules! field {
    (peer $value:expr) => {
        $value.to_string()
    };
    (address $value:expr) => {
        $value.to_string()
    };
    (error $value:expr) => {
        $value.to_string()
    };
    (detail $value:expr) => {
        $value.into()
    };
    ($slot:ident $value:expr) => {
        $value
    };
}

/// Defines the events.
macro_rules! events {
    (
        everywhere { $(
            $(#[$doc:meta])* $name:ident $c:ident = $n:literal, $pattern:pat
            $(=> {
                $($(#[$field_doc:meta])* $slot:ident $field:ident: $type:ty = $value:expr,)*
            } $(c { $($more:tt)* })?)?,
        )* }
        languages { $(
            $(#[$own_doc:meta])* $own:ident, $own_pattern:pat
            => { $($(#[$own_field_doc:meta])* $own_field:ident: $own_type:ty = $own_value:expr,)* }
        )* }
        c { $($only_c:tt)* }
    ) => {
        /// An event of a transfer. Later versions may add kinds, so handle unknown ones.
        #[derive(Clone, Debug, uniffi::Enum)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$doc])* $name $({ $($(#[$field_doc])* $field: $type,)* })?,)*
            $($(#[$own_doc])* $own { $($(#[$own_field_doc])* $own_field: $own_type,)* },)*
        }

        impl From<wraith::Event> for Event {
            fn from(event: wraith::Event) -> Self {
                match &event.or_note() {
                    $($pattern => Self::$name $({ $($field: field!($slot $value),)* })?,)*
                    $($own_pattern => Self::$own { $($own_field: $own_value,)* },)*
                }
            }
        }
    };
}

include!("../../../bindings/events.rs");

/// A stream of events. Each event goes to one of its concurrent readers.
#[derive(Debug)]
pub(crate) struct EventReader(Mutex<wraith::Events>);

impl EventReader {
    pub fn new(events: wraith::Events) -> Self {
        Self(Mutex::new(events))
    }

    /// Returns the next event, or `None` after the last one.
    pub async fn next(&self) -> Option<Event> {
        self.0.lock().await.next().await.map(Event::from)
    }
}
