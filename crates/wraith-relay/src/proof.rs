//! How a client shows that it may use a relay, or go on with a session (SPEC §13.3). Every proof is made of the exporter of the TLS
//! session it is sent in (RFC 8446 §7.5): on any other it is worth nothing, so whoever stands between with another certificate cannot
//! pass it on, and a token or a secret itself is never sent.

use std::fmt;

use wraith_crypto::{NodeId, SecretIdentity, equal, kdf};
use zeroize::ZeroizeOnDrop;

use crate::frame::Proof;

/// Label of the exporter.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-wraith-1-relay";
/// What an identity signs in front of the exporter: no signature made for anything else counts here.
const IDENTITY_CONTEXT: &[u8] = b"wraith/1 relay identity";

/// A value that only the two ends of one TLS session know.
pub type Exporter = [u8; 32];

/// What a relay gives to those who may use it. Whoever has it may.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Token([u8; 32]);

impl Token {
    /// The token with this text. Spaces around it do not count.
    pub fn new(text: &str) -> Self {
        Self(kdf::derive("wraith/1 relay token", text.trim().as_bytes()))
    }

    fn proof(&self, exporter: &Exporter) -> [u8; 32] {
        kdf::keyed(&self.0, exporter)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

impl Proof {
    /// That we have `token`.
    pub fn of_token(token: &Token, exporter: &Exporter) -> Self {
        Self::Token(token.proof(exporter))
    }

    /// That we are `identity`.
    pub fn of_identity(identity: &SecretIdentity, exporter: &Exporter) -> Self {
        let signature = identity.sign(&[IDENTITY_CONTEXT, exporter].concat());
        Self::Identity { node_id: *identity.node_id().as_bytes(), signature }
    }

    /// Whether it is made with `token`.
    pub fn shows_token(&self, token: &Token, exporter: &Exporter) -> bool {
        matches!(self, Self::Token(proof) if equal(proof, &token.proof(exporter)))
    }

    /// Whose identity it shows; None if it shows none.
    pub fn shows_identity(&self, exporter: &Exporter) -> Option<NodeId> {
        let Self::Identity { node_id, signature } = self else { return None };
        let node_id = NodeId(*node_id);
        node_id.verify(&[IDENTITY_CONTEXT, exporter].concat(), signature).ok()?;
        Some(node_id)
    }
}

/// That a session with `secret` is our own.
pub fn resumption(secret: &[u8; 32], exporter: &Exporter) -> [u8; 32] {
    kdf::keyed(&kdf::derive("wraith/1 relay resume", secret), exporter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_on_one_session_only() {
        let (token, other) = (Token::new("  correct horse "), Token::new("battery"));
        let proof = Proof::of_token(&token, &[1; 32]);
        assert!(proof.shows_token(&Token::new("correct horse"), &[1; 32]));
        assert!(!proof.shows_token(&token, &[2; 32]));
        assert!(!proof.shows_token(&other, &[1; 32]));
        assert!(!Proof::None.shows_token(&token, &[1; 32]));
        assert_eq!(proof.shows_identity(&[1; 32]), None);
    }

    #[test]
    fn an_identity_is_shown_on_one_session_only() {
        let identity = SecretIdentity::from_seed([3; 32]);
        let proof = Proof::of_identity(&identity, &[1; 32]);
        assert_eq!(proof.shows_identity(&[1; 32]), Some(identity.node_id()));
        assert_eq!(proof.shows_identity(&[2; 32]), None);
        let Proof::Identity { signature, .. } = proof else { unreachable!() };
        let node_id = *SecretIdentity::from_seed([4; 32]).node_id().as_bytes();
        assert_eq!(Proof::Identity { node_id, signature }.shows_identity(&[1; 32]), None);
        let nobody = Proof::Identity { node_id: [0; 32], signature };
        assert_eq!(nobody.shows_identity(&[1; 32]), None);
    }
}
