//! Published vectors, and implementations beside each other: of AES-256-GCM all that we have, of X25519, ML-KEM and Elligator2
//! ours beside somebody else's.

mod cavp;
mod differential;
mod elligator;
mod hash;
mod implementations;
mod kdf;
mod lines;
mod mac;
mod ml_kem;
mod rand;
mod wycheproof;
mod x25519;
