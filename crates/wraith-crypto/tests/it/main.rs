//! Published vectors, and implementations beside each other: of AES-256-GCM all that we have, of X25519, ML-KEM and Elligator2
//! ours beside somebody else's.

mod cavp;
mod differential;
mod elligator;
mod implementations;
mod ml_kem;
mod wycheproof;
mod x25519;
