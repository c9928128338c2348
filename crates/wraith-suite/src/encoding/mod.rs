//! Key formats: [DER](der), [PEM](pem), and the containers of private keys ([PKCS #8](pkcs8), for
//! elliptic curves with an [ECPrivateKey](sec1) inside) and public keys
//! ([SubjectPublicKeyInfo](spki)).
//!
//! The crates `der` and `pem-rfc7468` decode and encode. The structures here are stricter than those
//! of the crates `pkcs8` and `spki`.
//!
//! Input is rejected if it is not DER, has trailing bytes, or differs from the encoding that this
//! crate would write. So a public key in SubjectPublicKeyInfo has exactly one encoding, with two
//! exceptions. A point of SM2 may be compressed; and in the X25519 half of X-Wing, all 32-byte
//! strings are keys, some of them equivalent (RFC 7748 §5).
//!
//! For a private key in PKCS #8, this crate accepts several encodings, because other programs write
//! parts that this crate does not write:
//!
//! - attributes, which are skipped;
//! - the public key after the private key (version 2) or inside it (elliptic curves), and inside it
//!   the name of the curve; the public key is checked against the private key;
//! - a seed of ML-KEM or ML-DSA, which is checked against the expanded key beside it, if any;
//! - for RSA, the primes in either order, and as private exponent any value below the modulus that
//!   inverts the public exponent.
//!
//! This crate always writes a private key in the same encoding, except an RSA key, which it writes
//! with the numbers that it read. Parsing is not recursive, and all results borrow from the input.
//! So no input can cause much work or memory use.

pub mod oid;
pub mod pem;
pub mod pkcs8;
pub mod sec1;
pub(crate) mod seed;
pub(crate) mod signature;
pub mod spki;

pub use der;
