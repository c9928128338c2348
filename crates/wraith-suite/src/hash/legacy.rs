//! Broken hash functions: collisions are known, and anyone can compute more. Kept for formats that
//! require them, and for HMAC, where they are still secure.

use super::blocks::Blocks;
use super::types::{hash_traits, hash_type};
use super::{Algorithm, Function, Hash, compression};

hash_type!(/** Incremental state of SHA-1. A collision costs some ten thousand dollars (2020). */ Sha1, 20, 64, Blocks<compression::Sha1>);
hash_type!(/** Incremental state of MD5. A collision costs seconds. */ Md5, 16, 64, Blocks<compression::Md5>);
