//! Stream types: the first byte of a stream (SPEC §10.1, §10.10, §10.12). The control stream has no
//! type byte; every other stream has one.

/// Type of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamKind {
    /// The entries of the tree, from the sender.
    Manifest = 1,
    /// Records of wanted files, from the sender.
    Data = 2,
    /// A byte stream in place of a tree, from the sender.
    Bytes = 3,
    /// The capability secret of a sender that dialled.
    DiallerHello = 4,
}

impl StreamKind {
    /// Returns the byte used on the wire.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Returns the type for `byte`, if there is one.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Manifest,
            2 => Self::Data,
            3 => Self::Bytes,
            4 => Self::DiallerHello,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_one_kind_or_none() {
        let kinds: Vec<u8> =
            (0..=u8::MAX).filter_map(StreamKind::from_byte).map(StreamKind::byte).collect();
        assert_eq!(kinds, [1, 2, 3, 4]);
    }
}
