//! The commands `crypto` and `speed`, as the crate `wraith-crypto-commands` defines them.

pub use wraith_crypto_commands::crypto::{CryptoArgs, with_names};
pub use wraith_crypto_commands::speed::SpeedArgs;
pub use wraith_crypto_commands::{EXAMPLES, FOREIGN_COMMANDS, FOREIGN_OPTIONS};
