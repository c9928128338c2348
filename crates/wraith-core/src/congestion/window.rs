//! Initial values and bounds of windows and send quanta, for every controller.

/// Minimum window, in full packets (RFC 9002 §7.2).
const MINIMUM_WINDOW_PACKETS: u64 = 2;
/// Initial window, in full packets: the value of large senders on today's Internet, three times RFC
/// 9002's ten. It is paced after a first burst of ten.
const INITIAL_WINDOW_PACKETS: u64 = 32;
/// Maximum initial window in bytes for large packets, unless four packets are more.
const INITIAL_WINDOW_BYTES_MAX: u64 = 64 * 1024;
/// Maximum window in bytes: more than the bandwidth-delay product of any known path (10 Gbit/s ×
/// 800 ms).
pub const WINDOW_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of one segmented send, in bytes (a limit of the kernel).
const SEND_QUANTUM_BYTES_MAX: u64 = 64 * 1024;
/// Send quanta per second: a quantum is the pacing rate times 1 ms (draft-ietf-ccwg-bbr §4.6.3).
const SEND_QUANTA_PER_SECOND: u64 = 1000;

/// Returns the minimum window in bytes for datagrams of `mtu` bytes.
pub fn minimum_window(mtu: u16) -> u64 {
    MINIMUM_WINDOW_PACKETS * u64::from(mtu)
}

/// Returns the initial window, in bytes.
pub fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    (INITIAL_WINDOW_PACKETS * mtu).min(INITIAL_WINDOW_BYTES_MAX.max(4 * mtu))
}

/// Returns the send quantum at `pacing_rate` bytes per second, in bytes.
///
/// It fills one segmented send where the rate allows, so that pacing does not cost a system call
/// per packet. It is at least two packets where two fit.
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
