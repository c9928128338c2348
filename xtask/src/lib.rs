//! The developer commands as a library, so that `cargo lab` runs cargo and tests in the same way.

pub mod address_sanitizer;
pub mod bindings;
pub mod cargo;
pub mod fuzz;
#[cfg(test)]
mod glossary;
pub mod model;
pub mod package;
pub mod prose;
pub mod publishable;
pub mod recording;
pub mod skip;
pub mod test;

/// Settings with which the program runs in tests and measurements: it then contacts neither the DHT nor a router.
pub const OFFLINE: [(&str, &str); 2] = [("WRAITH_DHT", "off"), ("WRAITH_PORT_MAPPING", "off")];
