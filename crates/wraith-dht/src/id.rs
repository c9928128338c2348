//! 160-bit IDs of nodes and records.

use sha1_smol::Sha1;

/// Length of an ID in bytes.
pub const ID_LEN: usize = 20;

/// ID of a node or of a lookup target.
pub type Id = [u8; ID_LEN];

/// Returns the target at which the record of `key` is stored (BEP 44, without a salt).
pub fn target_of(key: &[u8; 32]) -> Id {
    Sha1::from(key).digest().bytes()
}

/// Returns the XOR distance between `a` and `b`: comparable, without a unit.
pub fn distance(a: &Id, b: &Id) -> Id {
    std::array::from_fn(|at| a[at] ^ b[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_that_of_bep_44() {
        // Key of test vector 2 of BEP 44, without the salt, as in vector 1.
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
