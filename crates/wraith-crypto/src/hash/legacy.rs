//! Hash functions that are broken: there are two texts with one digest, and whoever wants can make more. They are here for formats that
//! have them and for HMAC, in which they still hold.

use std::fmt;

use super::blocks::Blocks;
use super::types::hash_type;
use super::{Algorithm, Function, Hash, compression};

hash_type!(/** A running SHA-1: two texts with one digest cost some ten thousand dollars (2020). */ Sha1, 20, 64, Blocks<compression::Sha1>);
hash_type!(/** A running MD5: two texts with one digest cost seconds. */ Md5, 16, 64, Blocks<compression::Md5>);
