//! Secret options. They are objects and not records, because every language prints the fields of a
//! record.

use std::fmt;
use std::sync::Arc;

use rand_core::Rng;
use wraith::session::system_rng;
use zeroize::Zeroizing;

use crate::error::WraithError;
use crate::identity::array;

/// 32 secret bytes: an X25519 key or a pre-shared key. Wiped when the object is freed, and never
/// printed.
#[derive(uniffi::Object)]
#[uniffi::export(Debug)]
pub struct SecretKey(Zeroizing<[u8; 32]>);

#[uniffi::export]
impl SecretKey {
    /// Generates a new key.
    ///
    /// # Errors
    /// [`WraithError::NoRandomness`].
    #[uniffi::constructor]
    pub fn generate() -> Result<Arc<Self>, WraithError> {
        let mut key = Zeroizing::new([0; 32]);
        system_rng()?.fill_bytes(&mut *key);
        Ok(Arc::new(Self(key)))
    }

    /// Creates a key from 32 bytes.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if there are not 32 bytes.
    #[uniffi::constructor]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let bytes = Zeroizing::new(bytes);
        Ok(Arc::new(Self(Zeroizing::new(array("a key", &bytes)?))))
    }

    /// Returns the bytes, for storage.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl SecretKey {
    /// Copies the bytes for use within this library.
    pub(crate) fn copy(&self) -> Zeroizing<[u8; 32]> {
        self.0.clone()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").finish_non_exhaustive()
    }
}

/// A secret text, such as the access token of a relay. It is never printed.
#[derive(uniffi::Object)]
#[uniffi::export(Debug)]
pub struct SecretText(Zeroizing<String>);

#[uniffi::export]
impl SecretText {
    /// Wraps a text.
    #[uniffi::constructor]
    pub fn of(text: String) -> Arc<Self> {
        Arc::new(Self(Zeroizing::new(text)))
    }
}

impl SecretText {
    /// Returns a copy of the text.
    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretText").finish_non_exhaustive()
    }
}
