//! How keys are written down: [DER](der), [PEM](pem), and the envelopes of private keys ([PKCS#8](pkcs8)) and of public ones
//! ([SubjectPublicKeyInfo](spki)).
//!
//! What is not DER, has bytes behind it, or is spelled in another way than it would be written is refused, so that a public key in
//! SubjectPublicKeyInfo has one spelling, but SM2's, whose point may be compressed, and X-Wing's, in whose X25519 half every 32 bytes stand for some
//! key (RFC 7748 §5). A private key has several in PKCS #8, for other programs write what this crate does not:
//!
//! - attributes, which are passed over;
//! - the public half, behind the private one (version 2) or within it (elliptic curves), which is checked, and the name of the curve within it;
//! - a seed of ML-KEM or ML-DSA, which is checked against an expanded key beside it, if there is one;
//! - the order of RSA's primes, and its private exponent, which may be any below the modulus that undoes the public one.
//!
//! Such a key is written in one spelling again, but RSA's in that which was read. Nothing is recursive, and all that is read is borrowed from the
//! input, so that no input can make it work long or take memory.

pub mod der;
pub mod oid;
pub mod pem;
pub mod pkcs8;
pub(crate) mod seed;
pub mod spki;

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingError {
    /// The input ends before the value that it promises.
    #[error("the input ends in the middle of a value")]
    Truncated,
    /// A length, a number or a bit string has a spelling that is not DER's.
    #[error("a value is not spelled as DER demands")]
    NotDer,
    /// Another kind of value is expected here.
    #[error("a value has another type than is expected in its place")]
    UnexpectedTag,
    /// There is something behind the value.
    #[error("there are bytes behind the value")]
    TrailingBytes,
    /// A version of the format that is not known.
    #[error("the version of the format is not known")]
    UnknownVersion,
    /// The text is not PEM as RFC 7468 writes it.
    #[error("the text is not strict PEM")]
    NotPem,
    /// The PEM block holds something else, by its label.
    #[error("the PEM block holds something else")]
    WrongLabel,
}
