//! The key exchange of SM2 (GB/T 32918.3), which has keys of two kinds on each side and a trait of none.

pub use crate::sm2::{
    Confirmation, Exchange, ExchangeError, IDENTITY_DEFAULT, IDENTITY_MAX, PrivateKey, Role,
};
