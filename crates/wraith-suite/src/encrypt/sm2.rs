//! SM2 public-key encryption (GB/T 32918.4) with SM3.
//!
//! A ciphertext consists of the point C1 (65 bytes, uncompressed), the encrypted message C2 (as
//! long as the message) and the hash C3 (32 bytes). [`Layout`] gives their order and encoding.

use der::asn1::UintRef;
use der::{Decode as _, Encode as _, Sequence};
use zeroize::{Zeroize, Zeroizing};

use super::{Algorithm, EncryptError};
use crate::encoding::signature::write_padded;
use crate::hash::Sm3;
use crate::sm2::{
    KeyStream, POINT_BYTES, Public, SCALAR_BYTES, Secret, constructors, random_scalar,
};
use wraith_kernels::sm2::{self as kernel, Scalar};

/// Maximum length of a message in bytes.
pub const MESSAGE_MAX: usize = KeyStream::MAX;

const HASH_BYTES: usize = Sm3::DIGEST_BYTES;
const INVALID: EncryptError = EncryptError::InvalidKey { algorithm: Algorithm::Sm2 };

/// Order and encoding of a ciphertext.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// C1 ‖ C3 ‖ C2, the order of GB/T 32918.4.
    #[default]
    C1C3C2,
    /// C1 ‖ C2 ‖ C3, the order of the first edition (2010).
    C1C2C3,
    /// DER, a SEQUENCE of x, y, C3 and C2 (GM/T 0009).
    Der,
}

/// Defines a key with the layout of its ciphertexts.
macro_rules! key {
    ($(#[$meta:meta])* $key:ident { $half:ident: $type:ident }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $key {
            $half: $type,
            layout: Layout,
        }

        impl $key {
            const fn new($half: $type) -> Self {
                Self { $half, layout: Layout::C1C3C2 }
            }

            /// Sets the layout of the ciphertexts.
            #[must_use]
            pub const fn with_layout(mut self, layout: Layout) -> Self {
                self.layout = layout;
                self
            }
        }

        constructors!($key, $type, EncryptError);
    };
}

key!(/** A private key. */ DecryptionKey { secret: Secret });
key!(/** A public key. */ EncryptionKey { public: Public });

impl DecryptionKey {
    /// Returns the 32 bytes of the key.
    #[must_use]
    pub fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_bytes()
    }

    /// Returns the public key, with the same layout.
    #[must_use]
    pub const fn public(&self) -> EncryptionKey {
        EncryptionKey { public: self.secret.public, layout: self.layout }
    }

    fn open(&self, ciphertext: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let parts = CiphertextParts::read(self.layout, ciphertext)?;
        let point = Public::from_bytes(&parts.point)?.point;
        let shared = SharedPoint::new(&self.secret.scalar, &Public { point });
        let mut message = Zeroizing::new(parts.text.to_vec());
        let is_key = shared.apply(&mut message);
        let is_right = crate::equal(&shared.hash(&message), parts.hash);
        if is_key & is_right {
            return Some(message);
        }
        message.zeroize();
        None
    }
}

impl super::DecryptionKey for DecryptionKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm2
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, EncryptError> {
        self.open(ciphertext).ok_or(EncryptError::Unopened)
    }

    fn encryption_key(&self) -> Box<dyn super::EncryptionKey> {
        Box::new(self.public())
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_pkcs8()
    }
}

impl EncryptionKey {
    /// Returns the point, uncompressed.
    #[must_use]
    pub fn to_raw(&self) -> Vec<u8> {
        self.public.to_bytes().to_vec()
    }

    /// Encrypts with the nonce k. Returns `None` if k is zero, or if its key stream is all zeros.
    fn seal(&self, message: &[u8], nonce: &Scalar) -> Option<Vec<u8>> {
        if nonce.is_zero() {
            return None;
        }
        let point = Public { point: kernel::multiply_base(nonce) }.to_bytes();
        let shared = SharedPoint::new(nonce, &self.public);
        let hash = shared.hash(message);
        let mut text = message.to_vec();
        if !shared.apply(&mut text) {
            text.zeroize();
            return None;
        }
        Some(CiphertextParts { point, hash: &hash, text: &text }.write(self.layout))
    }
}

impl super::EncryptionKey for EncryptionKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm2
    }

    fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, EncryptError> {
        if message.len() > MESSAGE_MAX {
            return Err(EncryptError::TooLong { found: message.len(), max: MESSAGE_MAX });
        }
        loop {
            let nonce = Zeroizing::new(random_scalar(&[]));
            if let Some(ciphertext) = self.seal(message, &nonce) {
                return Ok(ciphertext);
            }
        }
    }

    fn message_max(&self) -> usize {
        MESSAGE_MAX
    }

    fn to_spki(&self) -> Vec<u8> {
        self.public.to_spki()
    }
}

/// The shared point: k · P for the sender, d · C1 for the recipient.
struct SharedPoint {
    x: Zeroizing<[u8; SCALAR_BYTES]>,
    y: Zeroizing<[u8; SCALAR_BYTES]>,
}

impl SharedPoint {
    fn new(scalar: &Scalar, public: &Public) -> Self {
        let point = Zeroizing::new(kernel::multiply(scalar, &public.point));
        let (x, y) = point.to_coordinates();
        Self { x: Zeroizing::new(x), y: Zeroizing::new(y) }
    }

    /// XORs the key stream into `text`. Returns false if it is all zeros, which the standard
    /// forbids. An empty message has no key stream to forbid.
    fn apply(&self, text: &mut [u8]) -> bool {
        KeyStream::new(&[&self.x[..], &self.y[..]]).apply(text) | text.is_empty()
    }

    fn hash(&self, message: &[u8]) -> [u8; HASH_BYTES] {
        let mut hash = Sm3::new();
        for part in [&self.x[..], message, &self.y[..]] {
            hash.update(part);
        }
        hash.finish()
    }
}

/// A ciphertext in [`Layout::Der`].
#[derive(Sequence)]
struct DerCiphertext<'a> {
    x: UintRef<'a>,
    y: UintRef<'a>,
    #[asn1(type = "OCTET STRING")]
    hash: &'a [u8],
    #[asn1(type = "OCTET STRING")]
    text: &'a [u8],
}

/// A parsed ciphertext.
struct CiphertextParts<'a> {
    point: [u8; POINT_BYTES],
    hash: &'a [u8],
    text: &'a [u8],
}

impl<'a> CiphertextParts<'a> {
    fn read(layout: Layout, ciphertext: &'a [u8]) -> Option<Self> {
        if layout == Layout::Der {
            return Self::read_der(ciphertext);
        }
        let (point, rest) = ciphertext.split_first_chunk()?;
        let text_bytes = rest.len().checked_sub(HASH_BYTES)?;
        let (hash, text) = match layout {
            Layout::C1C2C3 => {
                let (text, hash) = rest.split_at(text_bytes);
                (hash, text)
            }
            _ => rest.split_at(HASH_BYTES),
        };
        (text_bytes <= MESSAGE_MAX).then_some(Self { point: *point, hash, text })
    }

    fn read_der(ciphertext: &'a [u8]) -> Option<Self> {
        let DerCiphertext { x, y, hash, text } = DerCiphertext::from_der(ciphertext).ok()?;
        let mut point = [0; POINT_BYTES];
        point[0] = 4;
        for (half, number) in point[1..].chunks_exact_mut(SCALAR_BYTES).zip([x, y]) {
            write_padded(number, half)?;
        }
        (hash.len() == HASH_BYTES && text.len() <= MESSAGE_MAX).then_some(Self {
            point,
            hash,
            text,
        })
    }

    fn write(&self, layout: Layout) -> Vec<u8> {
        let (x, y) = self.point[1..].split_at(SCALAR_BYTES);
        match layout {
            Layout::C1C3C2 => [&self.point, self.hash, self.text].concat(),
            Layout::C1C2C3 => [&self.point, self.text, self.hash].concat(),
            Layout::Der => {
                let [x, y] = [x, y].map(|number| UintRef::new(number).expect("it is small"));
                let parts = DerCiphertext { x, y, hash: self.hash, text: self.text };
                parts.to_der().expect("the text has at most MESSAGE_MAX bytes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encrypt::DecryptionKey as _;

    fn hex(text: &str) -> Vec<u8> {
        data_encoding::HEXUPPER_PERMISSIVE.decode(text.as_bytes()).unwrap()
    }

    /// GB/T 32918.5 Annex C.2.
    const KEY: &str = "3945208F7B2144B13F36E38AC6D39F95889393692860B51A42FB81EF4DF7C5B8";
    const NONCE: &str = "59276E27D506861A16680F3AD9C02DCCEF3CC1FA3CDBE4CE6D54B80DEAC1BC21";
    const C1: &str = "0404EBFC718E8D1798620432268E77FEB6415E2EDE0E073C0F4F640ECD2E149A73\
                      E858F9D81E5430A57B36DAAB8F950A3C64E6EE6A63094D99283AFF767E124DF0";
    const C2: &str = "21886CA989CA9C7D58087307CA93092D651EFA";
    const C3: &str = "59983C18F809E262923C53AEC295D30383B54E39D609D160AFCB1908D0BD8766";

    #[test]
    fn the_ciphertext_of_the_standard_is_made_and_opened_in_every_layout() {
        let nonce = Scalar::from_bytes(hex(NONCE)[..].try_into().unwrap()).unwrap();
        for (layout, expected) in [
            (Layout::C1C3C2, Some([C1, C3, C2].concat())),
            (Layout::C1C2C3, Some([C1, C2, C3].concat())),
            (Layout::Der, None),
        ] {
            let key = DecryptionKey::from_raw(&hex(KEY)).unwrap().with_layout(layout);
            let ciphertext = key.public().seal(b"encryption standard", &nonce).unwrap();
            if let Some(expected) = expected {
                assert_eq!(ciphertext, hex(&expected), "{layout:?}");
            }
            assert_eq!(&key.decrypt(&ciphertext).unwrap()[..], b"encryption standard");
        }
    }

    #[test]
    fn a_key_stream_of_zeros_is_not_used() {
        let key = DecryptionKey::from_raw(&hex(KEY)).unwrap();
        let zero = Scalar::ONE.sub(&Scalar::ONE);
        assert!(key.public().seal(b"m", &zero).is_none());
        // For a message of one byte, one nonce in 256 has a zero key stream.
        let mut nonce = Scalar::ONE;
        let unlucky = (0..5000)
            .find(|_| {
                nonce = nonce.add(&Scalar::ONE);
                key.public().seal(b"m", &nonce).is_none()
            })
            .expect("one in 256");
        assert!(unlucky > 0);
        // A forged ciphertext with such a nonce.
        let point = Public { point: kernel::multiply_base(&nonce) }.to_bytes();
        let hash = SharedPoint::new(&nonce, &key.secret.public).hash(b"m");
        let ciphertext = CiphertextParts { point, hash: &hash, text: b"m" }.write(Layout::C1C3C2);
        assert_eq!(key.decrypt(&ciphertext).err(), Some(EncryptError::Unopened));
    }
}
