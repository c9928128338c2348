use proptest::prelude::*;
use wraith_crypto::Suite;

use super::*;
use crate::DirectionKeys;

const CID: [u8; CID_BYTES] = *b"ourCIDis";
const CID_MASK: [u8; 32] = [3; 32];

fn suites() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.is_built())
}

fn keys() -> DirectionKeys {
    DirectionKeys { secret: [1; 32], pn_mask: [2; 32], cid: CID, cid_mask: CID_MASK }
}

/// Both ends of one direction of a connection.
struct Direction {
    sealer: Sealer,
    opener: Opener,
}

impl Direction {
    fn new(suite: Suite) -> Self {
        Self { sealer: Sealer::new(suite, &keys()), opener: Opener::new(suite, &keys()) }
    }

    fn seal(&mut self, pn: u64, frames: &[u8]) -> Vec<u8> {
        let mut datagram = [&[0xee; HEADER_BYTES], frames, &[0xee; 16]].concat();
        self.sealer.seal(pn, &mut datagram);
        datagram
    }

    fn open(&mut self, datagram: &[u8]) -> Result<(Opened, Vec<u8>), PacketOpenError> {
        let mut datagram = datagram.to_vec();
        let opened = self.opener.open(&mut datagram)?;
        let frames = &datagram[HEADER_BYTES..HEADER_BYTES + opened.payload_len];
        Ok((opened, frames.to_vec()))
    }
}

#[test]
fn a_packet_is_protected_as_the_specification_says() {
    use wraith_crypto::{MaskKey, PacketKey};
    for suite in suites() {
        let mut direction = Direction::new(suite);
        direction.sealer.advance_phase();
        let pn = (7 << 31) + 0x0102_0304;
        let packet = direction.seal(pn, b"frames");

        let secret = wraith_crypto::kdf::derive("wraith/1 next packet secret", &[1; 32]);
        let mut header = [0; 12];
        header[..8].copy_from_slice(&CID);
        header[8..].copy_from_slice(&[0x81, 2, 3, 4]);
        let mut expected = [&header, &b"frames"[..]].concat();
        let tag = PacketKey::new(suite, &secret).seal(pn, &header, &mut expected[12..]);
        expected.extend(tag);
        let cid_mask = MaskKey::new(CID_MASK).mask(&tag);
        let pn_mask = MaskKey::new([2; 32]).mask(&tag);
        for i in 0..12 {
            expected[i] ^= if i < 8 { cid_mask[i] } else { pn_mask[i] };
        }
        assert_eq!(packet, expected);
    }
}

#[test]
fn packets_open_in_any_order_and_only_once() {
    for suite in suites() {
        let mut direction = Direction::new(suite);
        let mut packets: Vec<_> =
            (0..100u64).map(|pn| (pn, direction.seal(pn, &pn.to_be_bytes()))).collect();
        packets.sort_by_key(|(pn, _)| pn * 37 % 101);
        for (pn, packet) in &packets {
            let (opened, frames) = direction.open(packet).unwrap();
            assert_eq!(opened, Opened { pn: *pn, payload_len: 8, new_phase: false });
            assert_eq!(frames, pn.to_be_bytes());
        }
        for (_, packet) in &packets {
            assert_eq!(direction.open(packet), Err(PacketOpenError::Unauthentic));
        }
    }
}

#[test]
fn every_changed_bit_is_noticed_and_does_no_harm() {
    for suite in suites() {
        let mut direction = Direction::new(suite);
        let packet = direction.seal(0, b"some frames");
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // Bits of the connection ID, or of the sample for its mask.
            let of_cid = bit < 64 || bit >= (packet.len() - 16) * 8;
            let expected = if of_cid {
                PacketOpenError::OtherConnection
            } else {
                PacketOpenError::Unauthentic
            };
            assert_eq!(direction.open(&changed), Err(expected), "bit {bit}");
            assert_eq!(direction.opener.has_connection_id(&changed), !of_cid);
        }
        for len in 0..packet.len() {
            assert_eq!(
                direction.open(&packet[..len]),
                Err(PacketOpenError::OtherConnection),
                "length {len}"
            );
        }
        assert_eq!(direction.open(&packet).unwrap().1, b"some frames");
    }
}

#[test]
fn a_packet_of_another_connection_is_left_untouched() {
    let mut direction = Direction::new(Suite::Aes256Gcm);
    let packet = direction.seal(0, b"frames");
    let mut copy = packet.clone();
    for other in [
        DirectionKeys { cid: *b"otherCID", ..keys() },
        DirectionKeys { cid_mask: [4; 32], ..keys() },
    ] {
        let mut other = Opener::new(Suite::Aes256Gcm, &other);
        assert!(!other.has_connection_id(&copy));
        assert_eq!(other.open(&mut copy), Err(PacketOpenError::OtherConnection));
        assert_eq!(copy, packet);
    }
    assert!(direction.opener.has_connection_id(&packet));
    direction.open(&packet).unwrap();
    assert_eq!(direction.opener.open(&mut copy), Err(PacketOpenError::Unauthentic), "a repetition");
    assert_eq!(copy, packet);
}

#[test]
fn a_failed_open_leaves_the_header_as_it_was() {
    let mut direction = Direction::new(Suite::Aes256Gcm);
    let mut packet = direction.seal(0, b"frames");
    packet[HEADER_BYTES] ^= 1;
    let mut copy = packet.clone();
    assert_eq!(direction.opener.open(&mut copy), Err(PacketOpenError::Unauthentic));
    assert_eq!(copy[..HEADER_BYTES], packet[..HEADER_BYTES]);
    assert_eq!(direction.opener.forgeries, 1);
}

#[test]
fn after_too_many_forgeries_nothing_opens_any_more() {
    let mut direction = Direction::new(Suite::ChaCha20Poly1305);
    let packet = direction.seal(0, b"frames");
    direction.opener.forgeries = FORGERIES_MAX;
    assert_eq!(direction.open(&packet), Err(PacketOpenError::Unauthentic));
}

#[test]
fn a_change_of_phase_is_followed_and_late_packets_of_the_old_one_still_open() {
    for suite in suites() {
        let mut direction = Direction::new(suite);
        let first = direction.seal(0, b"phase 0");
        let late = direction.seal(1, b"phase 0, late");
        let later = direction.seal(2, b"phase 0, too late");
        assert_eq!(direction.sealer.packets_in_phase(), 3);
        direction.sealer.advance_phase();
        assert_eq!(direction.sealer.packets_in_phase(), 0);
        assert!(direction.sealer.phase());
        let second = direction.seal(3, b"phase 1");
        let third = direction.seal(4, b"phase 1 again");

        assert!(!direction.open(&first).unwrap().0.new_phase);
        assert!(direction.open(&third).unwrap().0.new_phase);
        assert!(direction.opener.phase());
        assert!(!direction.open(&second).unwrap().0.new_phase);
        assert_eq!(direction.open(&late).unwrap().1, b"phase 0, late");
        direction.opener.forget_previous_phase();
        assert_eq!(direction.open(&later), Err(PacketOpenError::Unauthentic));

        direction.sealer.advance_phase();
        assert!(!direction.sealer.phase());
        let fourth = direction.seal(5, b"phase 2");
        assert!(direction.open(&fourth).unwrap().0.new_phase);
        assert!(!direction.opener.phase());
    }
}

#[test]
fn the_phase_behind_a_ratchet_has_the_secret_that_the_specification_says() {
    use wraith_crypto::kdf::{derive, derive_parts};
    for suite in suites() {
        let mut direction = Direction::new(suite);
        direction.sealer.ratchet(&[9; 32]);
        direction.sealer.advance_phase();
        let next = |secret: [u8; 32]| derive("wraith/1 next packet secret", &secret);
        let secret_2 = next(next([1; 32]));
        let ratcheted = derive_parts("wraith/2 ratcheted packet secret", &[&secret_2, &[9; 32]]);
        let mut other = Sealer::new(suite, &DirectionKeys { secret: ratcheted, ..keys() });
        for phase in 0..3 {
            // `other` started with this phase, so its phase bits are inverted.
            let mut datagram = [0xee; 100];
            other.seal(phase, &mut datagram);
            let ours = direction.seal(phase, &[0xee; 100 - HEADER_BYTES - 16]);
            assert_eq!(ours[HEADER_BYTES..84], datagram[HEADER_BYTES..84], "phase {phase}");
            direction.sealer.advance_phase();
            other.advance_phase();
        }
    }
}

#[test]
fn only_the_two_ends_follow_a_ratchet() {
    for suite in suites() {
        let mut direction = Direction::new(suite);
        // An attacker that stole every key before the ratchet.
        let mut thief = Opener::new(suite, &keys());
        let [first, late] = [0, 1].map(|pn| direction.seal(pn, b"before"));
        direction.sealer.ratchet(&[9; 32]);
        let present = direction.seal(2, b"still before");
        direction.sealer.advance_phase();
        let behind = direction.seal(3, b"behind");

        direction.open(&first).unwrap();
        assert_eq!(direction.open(&behind), Err(PacketOpenError::Unauthentic), "not agreed yet");
        direction.opener.ratchet(&[9; 32]);
        direction.open(&present).unwrap();
        assert!(direction.open(&behind).unwrap().0.new_phase);
        assert_eq!(direction.open(&late).unwrap().1, b"before");

        assert!(thief.open(&mut present.clone()).is_ok());
        assert_eq!(thief.open(&mut behind.clone()), Err(PacketOpenError::Unauthentic));
        for _ in 0..4 {
            thief.ratchet(&[0; 32]);
            assert_eq!(thief.open(&mut behind.clone()), Err(PacketOpenError::Unauthentic));
        }
        direction.sealer.advance_phase();
        let next = direction.seal(4, b"the next phase");
        assert!(direction.open(&next).unwrap().0.new_phase);
    }
}

#[test]
fn a_forged_change_of_phase_changes_nothing() {
    let mut direction = Direction::new(Suite::Aes256Gcm);
    let packet = direction.seal(0, b"frames");
    direction.sealer.advance_phase();
    let mut forged = direction.seal(1, b"frames");
    forged[HEADER_BYTES + 1] ^= 1;
    assert_eq!(direction.open(&forged), Err(PacketOpenError::Unauthentic));
    assert!(!direction.opener.phase());
    assert!(!direction.open(&packet).unwrap().0.new_phase);
}

#[test]
fn packet_numbers_may_jump_and_pass_31_bits() {
    let mut direction = Direction::new(Suite::Aes256Gcm);
    let numbers = [0, 1, 1 << 20, (1 << 30) - 1, (1 << 31) - 2, 1 << 31, (1 << 31) + 5, 3 << 30];
    for pn in numbers {
        let packet = direction.seal(pn, b"frames");
        assert_eq!(direction.open(&packet).unwrap().0.pn, pn);
    }
}

#[test]
#[should_panic(expected = "was used already")]
fn a_packet_number_is_never_used_twice() {
    let mut direction = Direction::new(Suite::Aes256Gcm);
    direction.seal(5, b"frames");
    direction.seal(5, b"other frames");
}

#[test]
#[should_panic(expected = "reached its limit")]
fn a_key_never_seals_more_than_its_limit() {
    let mut direction = Direction::new(Suite::Aes256Gcm);
    direction.sealer.packets_in_phase = KEY_PACKETS_MAX;
    direction.seal(0, b"frames");
}

/// Pearson's chi-square statistic of the byte counts, against a uniform distribution.
fn chi_square(counts: &[u32; 256]) -> f64 {
    let expected = counts.iter().sum::<u32>() as f64 / 256.0;
    counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum()
}

#[test]
fn no_byte_of_a_packet_is_anything_but_random() {
    const PACKETS: u64 = 2000;
    for suite in suites() {
        let mut direction = Direction::new(suite);
        let mut counts = vec![[0u32; 256]; 100 + PACKET_OVERHEAD];
        for pn in 0..PACKETS {
            let packet = direction.seal(pn, &[0; 100]);
            for (counts, byte) in counts.iter_mut().zip(packet) {
                counts[usize::from(byte)] += 1;
            }
        }
        for (position, counts) in counts.iter().enumerate() {
            // 255 degrees of freedom: mean 255, standard deviation 22.6. A constant byte gives
            // 510,000, a constant bit 2000.
            let statistic = chi_square(counts);
            assert!((130.0..410.0).contains(&statistic), "byte {position}: {statistic}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_sealed_opens_across_phases_and_losses(
        chacha: bool,
        steps in prop::collection::vec((0..3u64, 1..1400usize, any::<bool>(), 0..20u8), 1..60),
    ) {
        let mut direction = Direction::new(Suite::ALL[usize::from(chacha)]);
        let mut pn = 0;
        // SPEC §4.5: only after a packet of the current phase has arrived.
        let mut arrived_in_phase = false;
        for (skip, len, lost, phase) in steps {
            let advanced = phase == 0 && arrived_in_phase;
            if advanced {
                direction.sealer.advance_phase();
                arrived_in_phase = false;
            }
            let frames: Vec<u8> = (0..len).map(|i| i as u8).collect();
            pn += skip;
            let packet = direction.seal(pn, &frames);
            if !lost {
                let expected_phase = direction.opener.phase() != direction.sealer.phase();
                let (opened, read) = direction.open(&packet).unwrap();
                prop_assert_eq!(opened, Opened { pn, payload_len: len, new_phase: expected_phase });
                prop_assert_eq!(read, frames);
                arrived_in_phase = true;
            }
            pn += 1;
        }
    }

    #[test]
    fn garbage_never_panics_and_never_opens(
        garbage in prop::collection::vec(any::<u8>(), 0..1500), claims_our_cid: bool,
    ) {
        let mut direction = Direction::new(Suite::Aes256Gcm);
        prop_assert_eq!(direction.open(&garbage), Err(PacketOpenError::OtherConnection));
        if claims_our_cid && garbage.len() >= PACKET_BYTES_MIN {
            let mut claiming = garbage.clone();
            let mask = wraith_crypto::MaskKey::new(CID_MASK).mask(sample(&garbage).unwrap());
            for i in 0..CID_BYTES {
                claiming[i] = CID[i] ^ mask[i];
            }
            prop_assert!(direction.opener.has_connection_id(&claiming));
            prop_assert_eq!(direction.open(&claiming), Err(PacketOpenError::Unauthentic));
        }
        let packet = direction.seal(0, b"frames");
        prop_assert!(direction.open(&packet).is_ok());
    }
}
