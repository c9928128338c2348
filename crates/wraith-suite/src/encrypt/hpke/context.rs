//! Contexts of sender and recipient (RFC 9180 §5.2): they seal and open messages in order, and
//! export secrets.

use zeroize::Zeroizing;

use super::labeled::LabeledKdf;
use super::{Aead, HpkeError};
use crate::aead;

const NONCE_BYTES: usize = 12;

/// The state of either side.
pub(super) struct Context {
    labeled: LabeledKdf,
    exporter: Zeroizing<Vec<u8>>,
    /// `None` if the suite is export-only.
    sealing: Option<Sealing>,
    /// Sequence number of the next message.
    sequence: u64,
}

/// Key and base nonce for messages.
struct Sealing {
    key: Box<dyn aead::Aead>,
    base_nonce: Zeroizing<Vec<u8>>,
}

impl Context {
    pub(super) fn new(
        aead: Aead,
        labeled: LabeledKdf,
        secret: &[u8],
        context: &[u8],
    ) -> Result<Self, HpkeError> {
        let exporter = labeled.expanded(secret, "exp", context, labeled.kdf.bytes());
        let sealing = aead.algorithm().map(|algorithm| {
            let key = labeled.expanded(secret, "key", context, algorithm.key_bytes());
            let key = algorithm.key(&key).expect("the length is the algorithm's");
            let base_nonce = labeled.expanded(secret, "base_nonce", context, NONCE_BYTES);
            Sealing { key, base_nonce }
        });
        Ok(Self { labeled, exporter, sealing, sequence: 0 })
    }

    /// Applies `run` to the key and the nonce of the next message. Only a success advances the
    /// sequence number.
    fn next(
        &mut self,
        run: impl FnOnce(&dyn aead::Aead, &[u8]) -> Result<Vec<u8>, HpkeError>,
    ) -> Result<Vec<u8>, HpkeError> {
        let Sealing { key, base_nonce } = self.sealing.as_ref().ok_or(HpkeError::CannotSeal)?;
        if self.sequence == u64::MAX {
            return Err(HpkeError::CannotSeal);
        }
        let mut nonce = Zeroizing::new([0; NONCE_BYTES]);
        nonce.copy_from_slice(base_nonce);
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        let done = run(&**key, &nonce[..])?;
        self.sequence += 1;
        Ok(done)
    }

    fn export(&self, context: &[u8], out: &mut [u8]) -> Result<(), HpkeError> {
        let found = out.len();
        let is_made = self.labeled.expand(&self.exporter, "sec", context, out);
        is_made.then_some(()).ok_or(HpkeError::ExportLength { found })
    }
}

/// Defines the context of one side.
macro_rules! side {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        pub struct $name(Context);

        impl $name {
            pub(super) const fn new(context: Context) -> Self {
                Self(context)
            }

            /// Fills `secret` with a secret for `context`. Only the other side can compute it, too.
            ///
            /// # Errors
            /// [`HpkeError::ExportLength`] if it is longer than 255 hashes.
            pub fn export(&self, context: &[u8], secret: &mut [u8]) -> Result<(), HpkeError> {
                self.0.export(context, secret)
            }
        }

        wraith_crypto::redacted_debug!(|it: $name| sequence: it.0.sequence);
    };
}

side!(/** Context of the sender, which seals. */ Sender);
side!(/** Context of the recipient, which opens. */ Recipient);

impl Sender {
    /// Seals the next message. Returns `text` encrypted, followed by a tag of 16 bytes over it and
    /// `aad`.
    ///
    /// # Errors
    /// [`HpkeError::CannotSeal`].
    pub fn seal(&mut self, aad: &[u8], text: &[u8]) -> Result<Vec<u8>, HpkeError> {
        self.0.next(|key, nonce| key.seal(nonce, aad, text).map_err(|_| HpkeError::CannotSeal))
    }
}

impl Recipient {
    /// Opens the next message. A message that fails to open does not advance the sequence number.
    ///
    /// # Errors
    /// [`HpkeError::Unopened`], or [`HpkeError::CannotSeal`] as for the sender.
    pub fn open(&mut self, aad: &[u8], sealed: &[u8]) -> Result<Vec<u8>, HpkeError> {
        self.0.next(|key, nonce| key.open(nonce, aad, sealed).map_err(|_| HpkeError::Unopened))
    }
}
