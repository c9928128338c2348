//! The 160-bit IDs of nodes and of what is stored.

use sha1_smol::Sha1;

/// Bytes of an ID.
pub const ID_LEN: usize = 20;

/// Of a node, or of what is looked for.
pub type Id = [u8; ID_LEN];

/// Where the record of this key is stored: BEP 44, without a salt.
pub fn target_of(key: &[u8; 32]) -> Id {
    Sha1::from(key).digest().bytes()
}

/// How far `a` is from `b`: comparable, in no unit.
pub fn distance(a: &Id, b: &Id) -> Id {
    std::array::from_fn(|at| a[at] ^ b[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_that_of_bep_44() {
        // Test vector 2 of BEP 44, without its salt as in vector 1.
        let key: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| {
                let hex = "77ff84905a91936367c01360803104f92432fcd904a43511876df5cdf3e7e548";
                u8::from_str_radix(&hex[at..at + 2], 16).unwrap()
            })
            .collect();
        let target = target_of(&key.try_into().unwrap());
        let hex: String = target.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "4a533d47ec9c7d95b1ad75f576cffc641853b750");
    }
}
