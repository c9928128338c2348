//! Hash functions, as whole digests and as compression functions.

use aws_lc_sys as aws;
use zeroize::Zeroize;

/// A hash function of signatures and public-key encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// SHA-1.
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Digest {
    /// Returns AWS-LC's description of the hash function, which is static.
    #[cfg(feature = "suite")]
    pub(crate) fn evp(self) -> *const aws::EVP_MD {
        // SAFETY: these functions have no preconditions.
        unsafe {
            match self {
                Self::Sha1 => aws::EVP_sha1(),
                Self::Sha224 => aws::EVP_sha224(),
                Self::Sha256 => aws::EVP_sha256(),
                Self::Sha384 => aws::EVP_sha384(),
                Self::Sha512 => aws::EVP_sha512(),
            }
        }
    }

    #[cfg(feature = "suite")]
    pub(crate) const fn nid(self) -> i32 {
        match self {
            Self::Sha1 => aws::NID_sha1,
            Self::Sha224 => aws::NID_sha224,
            Self::Sha256 => aws::NID_sha256,
            Self::Sha384 => aws::NID_sha384,
            Self::Sha512 => aws::NID_sha512,
        }
    }

    /// Returns the length of the digest in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Hashes `message`. Returns a buffer and the length of the digest at its start.
    #[must_use]
    pub fn of(self, message: &[u8]) -> ([u8; 64], usize) {
        let mut hash = [0; 64];
        // SAFETY: the functions write at most 64 bytes to `hash`, and `message` has the length
        // passed.
        unsafe {
            let (data, len, out) = (message.as_ptr(), message.len(), hash.as_mut_ptr());
            match self {
                Self::Sha1 => aws::SHA1(data, len, out),
                Self::Sha224 => aws::SHA224(data, len, out),
                Self::Sha256 => aws::SHA256(data, len, out),
                Self::Sha384 => aws::SHA384(data, len, out),
                Self::Sha512 => aws::SHA512(data, len, out),
            }
        };
        (hash, self.bytes())
    }
}

/// Incremental state of SHA-256. Wiped when dropped.
#[derive(Clone)]
pub struct Sha256(aws::SHA256_CTX);

impl Sha256 {
    /// Creates the state of an empty message.
    #[must_use]
    pub fn new() -> Self {
        let mut state =
            aws::SHA256_CTX { h: [0; 8], Nl: 0, Nh: 0, data: [0; 64], num: 0, md_len: 0 };
        // SAFETY: the function writes the whole state.
        unsafe { aws::SHA256_Init(&mut state) };
        Self(state)
    }

    /// Hashes the next piece of the message.
    pub fn update(&mut self, data: &[u8]) {
        // SAFETY: the state was initialized, and `data` has the length passed.
        unsafe { aws::SHA256_Update(&mut self.0, data.as_ptr().cast(), data.len()) };
    }

    /// Returns the digest of the message.
    #[must_use]
    pub fn finish(mut self) -> [u8; 32] {
        let mut digest = [0; 32];
        // SAFETY: the state was initialized, and the digest has 32 bytes.
        unsafe { aws::SHA256_Final(digest.as_mut_ptr(), &mut self.0) };
        digest
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Sha256 {
    fn drop(&mut self) {
        self.0.h.zeroize();
        self.0.data.zeroize();
    }
}

/// Absorbs `blocks`, whole blocks of 64 bytes, into a state of SHA-256.
#[cfg(feature = "suite")]
#[inline]
pub fn compress_sha_256(state: &mut [u32; 8], blocks: &[u8]) {
    // SAFETY: the state has eight words, and `blocks` has the number of blocks passed.
    unsafe { aws::SHA256_TransformBlocks(state.as_mut_ptr(), blocks.as_ptr(), blocks.len() / 64) };
}

/// Defines a function that absorbs whole blocks into a state.
#[cfg(feature = "suite")]
macro_rules! compress {
    ($name:ident, $hash:literal, $state:ty, $update:ident, $context:ident { $($rest:tt)* }) => {
        #[doc = concat!("Absorbs `blocks`, whole ones, into a state of ", $hash, ".")]
        #[inline]
        pub fn $name(state: &mut $state, blocks: &[u8]) {
            let mut context = aws::$context { h: *state, Nl: 0, Nh: 0, num: 0, $($rest)* };
            // SAFETY: the context has no pending data, and `blocks` is readable for its length.
            unsafe { aws::$update(&mut context, blocks.as_ptr().cast(), blocks.len()) };
            *state = context.h;
            context.h.zeroize();
        }
    };
}

#[cfg(feature = "suite")]
compress!(
    compress_sha_512,
    "SHA-512",
    [u64; 8],
    SHA512_Update,
    SHA512_CTX { p: [0; 128], md_len: 64 }
);
#[cfg(feature = "suite")]
compress!(compress_sha_1, "SHA-1", [u32; 5], SHA1_Update, SHA_CTX { data: [0; 64] });
#[cfg(feature = "suite")]
compress!(compress_md5, "MD5", [u32; 4], MD5_Update, MD5_CTX { data: [0; 64] });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_fips_180_4() {
        let hex = data_encoding::HEXLOWER;
        let of = |digest: Digest| {
            let (hash, len) = digest.of(b"abc");
            hex.encode(&hash[..len])
        };
        assert_eq!(of(Digest::Sha1), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(of(Digest::Sha224)[..16], *"23097d223405d822");
        assert_eq!(of(Digest::Sha256)[..16], *"ba7816bf8f01cfea");
        assert_eq!(of(Digest::Sha384)[..16], *"cb00753f45a35e8b");
        assert_eq!(of(Digest::Sha512)[..16], *"ddaf35a193617aba");
    }
}
