//! Chains of message keys, in which any number can be reached at little cost.
//!
//! The specification derives each chain key from the one before (KDF_CK). To reach message 2³¹
//! that way, a receiver computes 2³¹ keys. So a receiver must refuse messages that are far ahead,
//! and a long loss ends the conversation. Here four levels of chains nest. The four bytes of a
//! message number, the highest first, are its positions in the levels:
//!
//! | step | computation |
//! |---|---|
//! | the next key of a level | `keyed(key, 2)` |
//! | the first key of the level below | `keyed(key, 3)` |
//! | the message key, from a key of the lowest level | `keyed(key, 1)` |
//!
//! The chain key of the root step is the first key of the highest level. Any number is at most
//! 1,026 hashes away. Consecutive messages cost two hashes each, as in the specification.
//!
//! Invariant (forward secrecy): a chain at number `n` holds no key from which the key of a message
//! before `n` can be derived. Of each level but the lowest it holds only the key after the current
//! position.

use super::keys::{Secret, expand};
use crate::codec::{InvalidEncoding, Reader, Writer};

const MESSAGE: u8 = 1;
const NEXT: u8 = 2;
const BELOW: u8 = 3;
const LEVELS: usize = 4;

/// The keys of a chain from one number on.
#[derive(Clone)]
pub(super) struct MessageChain {
    /// The lowest level first: its key at the current position. Of each other level the key after
    /// the current position.
    keys: [Secret; LEVELS],
    number: u32,
}

impl MessageChain {
    /// Begins a chain at number 0.
    pub(super) fn new(key: Secret) -> Self {
        let empty = || Secret::new([0; 32]);
        let mut this = Self { keys: [empty(), empty(), empty(), key], number: 0 };
        for level in (1..LEVELS).rev() {
            this.enter(level);
        }
        this
    }

    /// Returns the number of the next message key.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the key of message [`Self::number`].
    pub(super) fn key(&self) -> Secret {
        expand(&self.keys[0], MESSAGE)
    }

    /// Moves behind message [`Self::number`], which is below `u32::MAX`.
    pub(super) fn advance(&mut self) {
        self.seek(self.number.checked_add(1).expect("a chain ends before its numbers do"));
    }

    /// Returns the key of message [`Self::number`] and moves behind it.
    pub(super) fn next_key(&mut self) -> Secret {
        let key = self.key();
        self.advance();
        key
    }

    /// Moves forward to `number`; never moves back.
    pub(super) fn seek(&mut self, number: u32) {
        let (from, to) = (self.number.to_le_bytes(), number.to_le_bytes());
        let Some(top) = (0..LEVELS).rev().find(|&level| from[level] != to[level]) else { return };
        if number < self.number {
            return;
        }
        // Above the lowest level, the key after the current position is there already.
        self.step(top, to[top] - from[top] - u8::from(top > 0));
        for level in (1..=top).rev() {
            self.enter(level);
            self.step(level - 1, to[level - 1]);
        }
        self.number = number;
    }

    fn step(&mut self, level: usize, count: u8) {
        for _ in 0..count {
            self.keys[level] = expand(&self.keys[level], NEXT);
        }
    }

    /// Derives the first key of the level below, and replaces the key of `level` by the next one.
    fn enter(&mut self, level: usize) {
        self.keys[level - 1] = expand(&self.keys[level], BELOW);
        self.keys[level] = expand(&self.keys[level], NEXT);
    }

    pub(super) fn save(&self, writer: &mut Writer) {
        writer.u32(self.number);
        for key in &self.keys {
            writer.bytes(&key[..]);
        }
    }

    pub(super) fn restore(reader: &mut Reader) -> Result<Self, InvalidEncoding> {
        let number = reader.u32()?;
        let keys = [reader.secret()?, reader.secret()?, reader.secret()?, reader.secret()?];
        Ok(Self { keys, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> MessageChain {
        MessageChain::new(Secret::new([7; 32]))
    }

    /// Computes a message key from the table at the top.
    fn reference(number: u32) -> Secret {
        let mut key = Secret::new([7; 32]);
        for (level, position) in number.to_be_bytes().into_iter().enumerate() {
            if level > 0 {
                key = expand(&key, BELOW);
            }
            for _ in 0..position {
                key = expand(&key, NEXT);
            }
        }
        expand(&key, MESSAGE)
    }

    #[test]
    fn consecutive_keys_are_those_of_the_table() {
        let mut chain = chain();
        for number in 0..66_000 {
            let key = chain.next_key();
            if number % 97 == 0 || number % 256 < 2 {
                assert_eq!(key, reference(number), "{number}");
            }
        }
        assert_eq!(chain.number(), 66_000);
    }

    #[test]
    fn any_number_is_reached_from_any_earlier_one() {
        let ends =
            [0, 1, 2, 254, 255, 256, 257, 511, 65_535, 65_536, 65_537, 0xff_ffff, 0x100_0000];
        let ends = ends.into_iter().chain([0x8000_0000, 0xfffe_ffff, 0xffff_ff00, u32::MAX - 1]);
        let ends: Vec<_> = ends.collect();
        for (at, &from) in ends.iter().enumerate() {
            for &to in &ends[at..] {
                let mut chain = chain();
                chain.seek(from);
                chain.seek(to);
                assert_eq!(chain.next_key(), reference(to), "from {from} to {to}");
                chain.seek(from);
                assert_eq!(chain.number(), to + 1, "it never moves back");
            }
        }
    }

    #[test]
    fn a_chain_derives_no_earlier_key() {
        for number in [1, 255, 256, 65_537, 0x0102_0304] {
            let mut chain = chain();
            chain.seek(number);
            // All keys that the held ones lead to in one step are those of later positions.
            for earlier in [number - 1, number & !0xff, number & !0xffff] {
                let Some(earlier) = (earlier < number).then_some(earlier) else { continue };
                let key = reference(earlier);
                for held in &chain.keys {
                    for label in [MESSAGE, NEXT, BELOW] {
                        assert_ne!(expand(held, label), key);
                    }
                    assert_ne!(*held, key);
                }
            }
        }
    }
}
