//! Sealing and opening are on the path of every packet: they must not allocate.

use wraith_noise::{CidMask, Opener, PACKET_OVERHEAD, Sealer, Suite};

use crate::memory::allocations;

#[test]
fn sealing_and_opening_packets_allocates_nothing() {
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let mut sealer = Sealer::new(suite, &[1; 32], [2; 32], [3; 8], [4; 32]);
        let mut opener = Opener::new(suite, &[1; 32], [2; 32], [3; 8]);
        let cid_mask = CidMask::new([4; 32]);
        let mut packet = vec![0; 1400 + PACKET_OVERHEAD];
        let before = allocations();
        assert!(before > 0, "the counter counts");
        for pn in 0..100 {
            sealer.seal(pn, &mut packet);
            let cid = cid_mask.unmask(&packet).expect("long enough");
            opener.open(cid, &mut packet).expect("authentic");
            assert!(opener.open(cid, &mut packet).is_err(), "opened already, so nothing authentic");
        }
        assert_eq!(allocations(), before);
    }
}
