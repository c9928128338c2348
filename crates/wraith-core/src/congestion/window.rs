//! Windows and send quanta that every controller begins with and is bounded by.

/// Fewest full packets a window may hold (RFC 9002 §7.2).
const MINIMUM_WINDOW_PACKETS: u64 = 2;
/// Full packets in the first window: what large senders use on today's Internet, three times RFC 9002's ten.
/// It is paced after a first burst of ten.
const INITIAL_WINDOW_PACKETS: u64 = 32;
/// Bytes in the first window when packets are large, unless four packets are more.
const INITIAL_WINDOW_BYTES_MAX: u64 = 64 * 1024;
/// No window grows beyond this many bytes: more than any known path's bandwidth-delay product (10 Gbit/s × 800 ms).
pub const WINDOW_BYTES_MAX: u64 = 1 << 30;
/// Bytes the kernel takes in one segmented send.
const SEND_QUANTUM_BYTES_MAX: u64 = 64 * 1024;
/// A send quantum is what the pacing rate releases in this part of a second (draft-ietf-ccwg-bbr §4.6.3: 1 ms).
const SEND_QUANTA_PER_SECOND: u64 = 1000;

/// Fewest bytes a window may have on a path whose datagrams carry `mtu` bytes.
pub fn minimum_window(mtu: u16) -> u64 {
    MINIMUM_WINDOW_PACKETS * u64::from(mtu)
}

/// Bytes of the first window.
pub fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    (INITIAL_WINDOW_PACKETS * mtu).min(INITIAL_WINDOW_BYTES_MAX.max(4 * mtu))
}

/// Bytes to send together at `pacing_rate` bytes per second.
///
/// They fill one segmented send where the rate allows it, so that pacing does not cost a system call for each packet. They
/// are never less than two packets where two fit.
pub fn send_quantum(pacing_rate: u64, mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    let least = (2 * mtu).min(SEND_QUANTUM_BYTES_MAX.max(mtu));
    (pacing_rate / SEND_QUANTA_PER_SECOND).min(SEND_QUANTUM_BYTES_MAX).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_send_quantum_is_a_millisecond_between_two_packets_and_one_segmented_send() {
        assert_eq!(send_quantum(100_000, 1200), 2400);
        assert_eq!(send_quantum(20_000_000, 1200), 20_000);
        assert_eq!(send_quantum(u64::MAX, 1200), 65_536);
        assert_eq!(send_quantum(u64::MAX, 65_000), 65_536);
        assert_eq!(send_quantum(0, 65_535), 65_536);
    }

    #[test]
    fn the_first_window_is_bounded_in_packets_and_bytes_and_never_below_the_minimum() {
        assert_eq!(initial_window(1200), 38_400);
        assert_eq!(initial_window(8952), 65_536);
        assert_eq!(initial_window(65_000), 260_000);
        for mtu in [1200, 1452, 1472, 8952, 65_000] {
            assert!(initial_window(mtu) >= minimum_window(mtu));
        }
    }
}
