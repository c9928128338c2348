//! Proofs that a client sends to a relay (SPEC §13.3). One kind admits the client, by a token or an
//! identity. The other kind proves that a relay session, which outlives its TLS connection, belongs
//! to the client.
//!
//! Every proof is a MAC or a signature over the exporter of the TLS connection (RFC 8446 §7.5).
//! Only the two ends of that connection share this value. The proof is therefore worthless on any
//! other TLS connection. An attacker in the middle has two TLS connections, and cannot forward a
//! proof from one to the other. A proof does not contain the token or the session secret.

use std::fmt;

use wraith_crypto::{NodeId, SecretIdentity, equal, kdf};
use zeroize::ZeroizeOnDrop;

use crate::frame::Proof;

/// Label of the TLS exporter.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-wraith-1-relay";
/// Signature context of an identity proof. It separates these signatures from all others.
const IDENTITY_CONTEXT: &[u8] = b"wraith/1 relay identity";

/// A value that only the two ends of one TLS session share.
pub type Exporter = [u8; 32];

/// A bearer token that admits its owner to a relay.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Token([u8; 32]);

impl Token {
    /// Derives a token from its text, ignoring surrounding spaces.
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
    /// Proves possession of `token`.
    pub fn of_token(token: &Token, exporter: &Exporter) -> Self {
        Self::Token(token.proof(exporter))
    }

    /// Proves ownership of `identity`.
    pub fn of_identity(identity: &SecretIdentity, exporter: &Exporter) -> Self {
        let signature = identity.sign(&[IDENTITY_CONTEXT, exporter].concat());
        Self::Identity { node_id: *identity.node_id().as_bytes(), signature }
    }

    /// Reports whether the proof was made with `token`.
    pub fn matches_token(&self, token: &Token, exporter: &Exporter) -> bool {
        matches!(self, Self::Token(proof) if equal(proof, &token.proof(exporter)))
    }

    /// Returns the proved identity, or `None` if the proof has none.
    pub fn verify_identity(&self, exporter: &Exporter) -> Option<NodeId> {
        let Self::Identity { node_id, signature } = self else { return None };
        let node_id = NodeId(*node_id);
        node_id.verify(&[IDENTITY_CONTEXT, exporter].concat(), signature).ok()?;
        Some(node_id)
    }
}

/// Proves ownership of the session with `secret`.
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
        assert!(proof.matches_token(&Token::new("correct horse"), &[1; 32]));
        assert!(!proof.matches_token(&token, &[2; 32]));
        assert!(!proof.matches_token(&other, &[1; 32]));
        assert!(!Proof::None.matches_token(&token, &[1; 32]));
        assert_eq!(proof.verify_identity(&[1; 32]), None);
    }

    #[test]
    fn an_identity_is_shown_on_one_session_only() {
        let identity = SecretIdentity::from_seed([3; 32]);
        let proof = Proof::of_identity(&identity, &[1; 32]);
        assert_eq!(proof.verify_identity(&[1; 32]), Some(identity.node_id()));
        assert_eq!(proof.verify_identity(&[2; 32]), None);
        let Proof::Identity { signature, .. } = proof else { unreachable!() };
        let node_id = *SecretIdentity::from_seed([4; 32]).node_id().as_bytes();
        assert_eq!(Proof::Identity { node_id, signature }.verify_identity(&[1; 32]), None);
        let nobody = Proof::Identity { node_id: [0; 32], signature };
        assert_eq!(nobody.verify_identity(&[1; 32]), None);
    }
}
