//! Published vectors, and implementations beside each other: of AES-256-GCM all that we have, of X25519, ML-KEM and Elligator2
//! ours beside somebody else's.

mod aeads;
mod aes_ciphers;
mod aes_macs;
mod agreement;
mod bignum;
mod cavp;
mod differential;
mod documentation;
mod ecdsa;
mod eddsa;
mod elligator;
mod encryption;
mod ffdhe;
mod hash;
mod hpke;
mod implementations;
mod kdf;
mod kem;
mod key_formats;
mod lines;
mod mac;
mod ml_dsa;
mod ml_kem;
mod rand;
mod rsa;
mod slh_dsa;
mod sm2;
mod sm4;
mod wycheproof;
mod x25519;
