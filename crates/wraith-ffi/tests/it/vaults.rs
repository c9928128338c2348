//! Vaults that another language implements.

use std::sync::Arc;

use wraith_ffi::{
    Durability, Handshake, HandshakeOptions, Identity, KeyVault, Session, StoredSession,
    VaultError, WraithError,
};

/// A vault whose calls do nothing. `store` returns the generation plus `off_by`.
struct InterruptedVault {
    off_by: u64,
}

impl KeyVault for InterruptedVault {
    fn store(&self, _: String, at: u64, _: Vec<u8>, _: Durability) -> Result<u64, VaultError> {
        Ok(at.wrapping_add(self.off_by))
    }

    fn load(&self, _: String) -> Result<Option<Vec<u8>>, VaultError> {
        Ok(None)
    }

    fn delete(&self, _: String) -> Result<bool, VaultError> {
        Ok(false)
    }

    fn latest(&self, _: String) -> Result<Option<u64>, VaultError> {
        Ok(None)
    }
}

fn session() -> Arc<Session> {
    let options = |seed| {
        let identity = Some(Identity::from_seed(vec![seed; 32]).unwrap());
        HandshakeOptions { identity, ..HandshakeOptions::default() }
    };
    let protocol = "Noise_IX_25519_ChaChaPoly_BLAKE2s";
    let initiator = Handshake::initiator(protocol.into(), options(1)).unwrap();
    let responder = Handshake::responder(protocol.into(), options(2)).unwrap();
    responder.read(initiator.write(Vec::new()).unwrap()).unwrap();
    initiator.read(responder.write(Vec::new()).unwrap()).unwrap();
    initiator.into_session().unwrap()
}

#[test]
fn an_unconfirmed_store_counts_as_failed_and_returns_the_session() {
    let session = session();
    for off_by in [1, u64::MAX] {
        let vault = Arc::new(InterruptedVault { off_by });
        let stored = StoredSession::create(vault, "anna".into(), &session).map(drop);
        assert!(matches!(stored, Err(WraithError::Vault(_))), "{off_by}: {stored:?}");
    }
    let vault = Arc::new(InterruptedVault { off_by: 0 });
    StoredSession::create(vault, "anna".into(), &session).unwrap();
    let moved = session.seal(Vec::new(), Vec::new());
    assert!(matches!(moved, Err(WraithError::WrongState(_))), "{moved:?}");
}
