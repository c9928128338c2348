//! Sealing and opening are on the path of every packet, so they must not allocate.

use wraith_noise::{DirectionKeys, Opener, PACKET_OVERHEAD, Sealer, Suite};

use crate::memory::allocations;

#[test]
fn sealing_and_opening_packets_allocates_nothing() {
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let keys =
            DirectionKeys { secret: [1; 32], pn_mask: [2; 32], cid: [3; 8], cid_mask: [4; 32] };
        let (mut sealer, mut opener) = (Sealer::new(suite, &keys), Opener::new(suite, &keys));
        let mut packet = vec![0; 1400 + PACKET_OVERHEAD];
        let before = allocations();
        assert!(before > 0, "the counter counts");
        for pn in 0..100 {
            sealer.seal(pn, &mut packet);
            assert!(opener.has_connection_id(&packet));
            opener.open(&mut packet).expect("authentic");
            assert!(opener.open(&mut packet).is_err(), "opened already, so nothing authentic");
        }
        assert_eq!(allocations(), before);
    }
}
