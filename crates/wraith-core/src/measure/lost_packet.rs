//! A packet declared lost.

/// One packet declared lost, with the counters from the time it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostPacket {
    /// Packet number.
    pub pn: u64,
    /// UDP payload bytes.
    pub size: u32,
    /// Bytes in flight right after it was sent, including itself.
    pub in_flight_at_send: u64,
    /// Total bytes delivered when it was sent.
    pub delivered_at_send: u64,
    /// Bytes declared lost since it was sent, including itself.
    pub lost_since_send: u64,
    /// Bytes acknowledged or declared lost since it was sent, including itself and
    /// `lost_since_send`.
    pub settled_since_send: u64,
    /// The sender was application-limited around that time.
    pub app_limited: bool,
}

impl LostPacket {
    /// Creates packet `pn` of `size` bytes with all other fields zero.
    pub fn new(pn: u64, size: u32) -> Self {
        Self { pn, size, ..Self::default() }
    }
}
