//! Stream types: the first byte of a stream (SPEC §10.1, §10.10, §10.12). The control stream has no
//! type byte; every other stream has one.

use wraith_crypto::wire_enum;

wire_enum! {
    /// Type of a stream.
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
