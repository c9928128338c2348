//! SM2 key exchange (GB/T 32918.3). Each side has a long-term and an ephemeral key, so this
//! exchange does not implement the trait of the other key agreements.

pub use crate::sm2::{
    Confirmation, Exchange, ExchangeError, IDENTITY_DEFAULT, IDENTITY_MAX, PrivateKey, Role,
};
