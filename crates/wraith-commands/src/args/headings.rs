//! The groups of options in the help, in the order of use. An option without a heading belongs to
//! the first group, "Options".

pub const CONTENT: &str = "Content";
pub const CONTACTS: &str = "Contacts";
pub const NETWORK: &str = "Network";
pub const SPEED: &str = "Time and speed";
pub const CERTIFICATE: &str = "Certificate";
pub const ACCESS: &str = "Access";
pub const LIMITS: &str = "Limits";
pub const OUTPUT: &str = "Output";
