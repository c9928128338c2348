//! Packets that claim to belong to a connection. Invariant: damaged packets are refused and change
//! nothing, and each genuine packet opens only once.

use wraith_noise::{DirectionKeys, HEADER_BYTES, Opener, PACKET_OVERHEAD, Sealer, Suite};

use crate::input::Input;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let suite = if input.byte() & 1 == 0 { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 };
    let keys = DirectionKeys { secret: [1; 32], pn_mask: [2; 32], cid: [3; 8], cid_mask: [4; 32] };
    let (mut sealer, mut opener) = (Sealer::new(suite, &keys), Opener::new(suite, &keys));
    let mut open = |datagram: &mut [u8]| {
        opener.open(datagram).ok().map(|opened| (opened.pn, opened.payload_len))
    };
    let mut pn = u64::from(input.u16());
    while !input.is_empty() {
        let control = input.byte();
        let at = usize::from(input.u16());
        let len = 1 + usize::from(input.byte());
        let payload = input.bytes(len).to_vec();
        if payload.is_empty() {
            return;
        }
        if control & 1 != 0 {
            sealer.advance_phase();
        }
        let mut genuine = vec![0; payload.len() + PACKET_OVERHEAD];
        genuine[HEADER_BYTES..][..payload.len()].copy_from_slice(&payload);
        sealer.seal(pn, &mut genuine);

        let mut damaged = genuine.clone();
        match control >> 1 & 3 {
            0 => damaged[at % genuine.len()] ^= 1 << (at % 8),
            1 => damaged.truncate(at % genuine.len()),
            2 => damaged.extend_from_slice(&payload),
            _ => damaged.clone_from(&payload),
        }
        assert_eq!(open(&mut damaged), None, "damaged");
        assert_eq!(open(&mut genuine.clone()), Some((pn, payload.len())), "genuine");
        assert_eq!(open(&mut genuine), None, "again");
        // A sender may skip packet numbers, but a receiver recovers the number only within a
        // limited distance (SPEC §4.2).
        pn += 1 + u64::from(control >> 3) * 1000;
    }
}
