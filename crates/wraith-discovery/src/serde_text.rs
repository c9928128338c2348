//! `Serialize` and `Deserialize` of tickets and codes, as their text.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Code, Ticket};

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            /// Writes the text form, which is a secret.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

as_text!(Ticket, Code);
