//! Packet protection: sealing, opening, the replay window.

use std::hint::black_box;

use wraith_noise::{
    DirectionKeys, HEADER_BYTES, Opener, PACKET_OVERHEAD, ReplayWindow, Sealer, Suite,
};

use crate::{BATCH, DATAGRAM_BYTES, MOST};

fn keys() -> DirectionKeys {
    DirectionKeys { secret: [1; 32], pn_mask: [2; 32], cid: [3; 8], cid_mask: [4; 32] }
}

pub(crate) fn seal_aes(times: u64) {
    seal(Suite::Aes256Gcm, times);
}

pub(crate) fn seal_chacha(times: u64) {
    seal(Suite::ChaCha20Poly1305, times);
}

pub(crate) fn open_aes(times: u64) {
    open(Suite::Aes256Gcm, times);
}

pub(crate) fn open_chacha(times: u64) {
    open(Suite::ChaCha20Poly1305, times);
}

fn seal(suite: Suite, times: u64) {
    let mut sealer = Sealer::new(suite, &keys());
    let mut packet = vec![7; DATAGRAM_BYTES];
    for pn in 0..times * BATCH {
        sealer.seal(pn, black_box(&mut packet));
    }
    assert_eq!(sealer.packets_in_phase(), times * BATCH);
}

fn open(suite: Suite, times: u64) {
    let mut sealer = Sealer::new(suite, &keys());
    let mut packets = vec![7; (MOST * BATCH) as usize * DATAGRAM_BYTES];
    for (pn, packet) in packets.chunks_mut(DATAGRAM_BYTES).enumerate() {
        sealer.seal(pn as u64, packet);
    }
    let mut opener = Opener::new(suite, &keys());
    let mut opened = 0;
    for packet in packets.chunks_mut(DATAGRAM_BYTES).take((times * BATCH) as usize) {
        let packet_len = opener.open(black_box(packet)).expect("authentic").payload_len;
        opened += u64::from(packet_len == DATAGRAM_BYTES - PACKET_OVERHEAD);
        black_box(&packet[HEADER_BYTES]);
    }
    assert_eq!(opened, times * BATCH);
}

/// Three packets of four arrive in order, and the fourth arrives one batch late; each is repeated
/// once.
pub(crate) fn replay(times: u64) {
    let mut window = ReplayWindow::new();
    let (mut new, mut repeated) = (0, 0);
    for n in 0..times * BATCH {
        let pn = black_box(if n % 4 == 3 { n.saturating_sub(BATCH) } else { n });
        new += u64::from(window.insert(pn));
        repeated += u64::from(!window.insert(pn));
    }
    // In the first batch, a late packet has the number 0, which had arrived before.
    assert_eq!((new, repeated), (times * BATCH - BATCH / 4, times * BATCH));
}
