//! Vaults that another language implements.

use std::sync::Arc;

use wraith_ffi::{
    Durability, Handshake, HandshakeOptions, Identity, KeyVault, Session, VaultError, WraithError,
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
fn an_unconfirmed_store_counts_as_failed_and_leaves_the_session_in_memory() {
    let session = session();
    for off_by in [1, u64::MAX] {
        let vault = Arc::new(InterruptedVault { off_by });
        let kept = session.keep(vault, "anna".into());
        assert!(matches!(kept, Err(WraithError::Vault(_))), "{off_by}: {kept:?}");
        assert!(session.save().is_ok(), "a caller without a vault saves it");
    }
    let vault = Arc::new(InterruptedVault { off_by: 0 });
    session.keep(vault.clone(), "anna".into()).unwrap();
    let twice = [session.keep(vault, "berta".into()), session.save().map(drop)];
    assert!(twice.iter().all(|each| matches!(each, Err(WraithError::WrongState(_)))), "{twice:?}");
}
