//! The types of this module for processors and builds without its kernels: no value exists.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{BLOCK, Width};

/// A key that does not exist.
#[derive(Clone)]
pub enum GcmKey<const KEYS: usize = 15> {}

impl<const KEYS: usize> ZeroizeOnDrop for GcmKey<KEYS> {}

#[allow(missing_docs, clippy::must_use_candidate, clippy::unused_self)]
impl<const KEYS: usize> GcmKey<KEYS> {
    pub fn new(_: &[u8], _: Width) -> Option<Box<Self>> {
        None
    }

    pub fn width(&self) -> Width {
        match *self {}
    }

    pub fn seal(&self, _: &[u8; 12], _: &[u8], _: &mut [u8]) -> [u8; BLOCK] {
        match *self {}
    }

    pub fn seal_from(
        &self,
        _: &[u8; 12],
        _: &[u8],
        _: &mut [u8],
        _: usize,
        _: &[u8],
    ) -> [u8; BLOCK] {
        match *self {}
    }

    pub fn open(&self, _: &[u8; 12], _: &[u8], _: &mut [u8]) -> [u8; BLOCK] {
        match *self {}
    }

    pub fn seal_any(&self, _: &[u8], _: &[u8], _: &mut [u8]) -> [u8; BLOCK] {
        match *self {}
    }

    pub fn open_any(&self, _: &[u8], _: &[u8], _: &mut [u8]) -> [u8; BLOCK] {
        match *self {}
    }
}

/// Round keys that do not exist.
#[derive(Clone)]
pub enum RoundKeys {}

impl Zeroize for RoundKeys {
    fn zeroize(&mut self) {}
}

impl ZeroizeOnDrop for RoundKeys {}

#[allow(missing_docs, clippy::must_use_candidate)]
impl RoundKeys {
    pub fn new(_: &[u8]) -> Option<Self> {
        None
    }

    pub fn encrypt(&self, _: &[u8; BLOCK]) -> [u8; BLOCK] {
        match *self {}
    }

    pub fn encrypt_pair(a: &Self, _: &Self, _: &[u8; BLOCK]) -> ([u8; BLOCK], [u8; BLOCK]) {
        match *a {}
    }
}

/// The hash state of a key that does not exist.
pub enum Ghash {}

#[allow(missing_docs, clippy::must_use_candidate)]
impl Ghash {
    pub fn new(_: &[u8; 12]) -> Self {
        unreachable!("a hash state is made only after a key")
    }

    pub fn update<const KEYS: usize>(&mut self, _: &GcmKey<KEYS>, _: &[u8]) {
        match *self {}
    }

    pub fn finish<const KEYS: usize>(&self, _: &GcmKey<KEYS>) -> [u8; BLOCK] {
        match *self {}
    }
}
