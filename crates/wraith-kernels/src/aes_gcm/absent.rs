//! The types of this module for processors and builds without its kernels: no key exists.

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
pub enum RoundKeys<const KEYS: usize = 15> {}

impl<const KEYS: usize> Zeroize for RoundKeys<KEYS> {
    fn zeroize(&mut self) {}
}

impl<const KEYS: usize> ZeroizeOnDrop for RoundKeys<KEYS> {}

#[allow(missing_docs, clippy::must_use_candidate)]
impl<const KEYS: usize> RoundKeys<KEYS> {
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
pub struct Ghash(());

#[allow(missing_docs, clippy::must_use_candidate, clippy::unused_self)]
impl Ghash {
    pub fn new(_: &[u8; 12]) -> Self {
        Self(())
    }

    pub fn update<const KEYS: usize>(&mut self, key: &GcmKey<KEYS>, _: &[u8]) {
        match *key {}
    }

    pub fn finish<const KEYS: usize>(&self, key: &GcmKey<KEYS>) -> [u8; BLOCK] {
        match *key {}
    }
}
