//! A packet declared lost.

/// One packet declared lost, and what was known when it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostPacket {
    /// Packet number.
    pub pn: u64,
    /// UDP payload bytes.
    pub size: u32,
    /// Bytes in flight right after it was sent, itself included.
    pub in_flight_at_send: u64,
    /// Total delivered when it was sent.
    pub delivered_at_send: u64,
    /// Bytes declared lost since it was sent, itself included.
    pub lost_since_send: u64,
    /// Bytes acknowledged or declared lost since it was sent, itself included. `lost_since_send` is a part of these.
    pub settled_since_send: u64,
    /// The application had nothing more to send around that time.
    pub app_limited: bool,
}

impl LostPacket {
    /// Packet `pn` of `size` bytes, of which nothing else is known.
    pub fn new(pn: u64, size: u32) -> Self {
        Self { pn, size, ..Self::default() }
    }
}
