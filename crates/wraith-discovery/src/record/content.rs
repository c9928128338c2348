//! Plaintext of a record:
//!
//! ```text
//! kind(1) ‖ written(8) ‖ expires(8) ‖ reach ‖ length(2) ‖ body ‖ second part of the reach ‖ zeros
//! ```
//!
//! Times are in Unix seconds. This module does not interpret the body.

use wraith_crypto::wire_enum;
use zeroize::Zeroizing;

use super::hour::CLOCK_SKEW_SECONDS;
use super::lengths::CONTENT_LEN;
use crate::reach::Reach;

/// Longest lifetime of a record, which also bounds what a crash leaves behind.
pub const MAX_LIFE_SECONDS: u64 = 3600;

wire_enum! {
    /// Purpose of a record.
    pub enum Kind {
        /// Withdrawn by its writer.
        Withdrawn = 0,
        /// The writer's addresses.
        Reach = 1,
        /// A caller's request for immediate contact, with its addresses.
        Call = 2,
        /// A waiting code: its creator, and the result for the last joiner.
        Offer = 3,
        /// A joiner of a code.
        Join = 4,
    }
}

/// Content of a record. The body may hold secrets, so it is wiped on drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub kind: Kind,
    pub written: u64,
    pub expires: u64,
    pub reach: Reach,
    pub body: Zeroizing<Vec<u8>>,
}

impl Content {
    /// Creates a content written at `now` with a lifetime of `life` seconds.
    pub fn new(kind: Kind, now: u64, life: u64, reach: Reach) -> Self {
        let expires = now.saturating_add(life.min(MAX_LIFE_SECONDS));
        Self { kind, written: now, expires, reach, body: Zeroizing::default() }
    }

    /// Sets the body.
    pub fn with_body(mut self, body: Zeroizing<Vec<u8>>) -> Self {
        self.body = body;
        self
    }

    /// Creates the content that replaces a withdrawn record.
    pub fn withdrawn(now: u64) -> Self {
        Self::new(Kind::Withdrawn, now, MAX_LIFE_SECONDS, Reach::default())
    }

    /// Reports whether the record is valid at `now`, within the clock tolerance.
    pub fn is_fresh(&self, now: u64) -> bool {
        self.written <= now.saturating_add(CLOCK_SKEW_SECONDS)
            && self.expires.saturating_add(CLOCK_SKEW_SECONDS) >= now
            && self.expires >= self.written
            && self.expires - self.written <= MAX_LIFE_SECONDS
    }

    /// Encodes [`CONTENT_LEN`] bytes. Ways that do not fit beside the body are dropped.
    ///
    /// # Panics
    /// If the body does not fit, which no body of this crate does.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(CONTENT_LEN));
        out.push(self.kind.byte());
        out.extend_from_slice(&self.written.to_be_bytes());
        out.extend_from_slice(&self.expires.to_be_bytes());
        let room = CONTENT_LEN.checked_sub(out.len() + 2 + self.body.len());
        let reach = self.reach.fitted_in_message(room.expect("bodies leave room"));
        reach.encode(&mut out);
        out.extend_from_slice(&(self.body.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.body);
        reach.encode_custom(&mut out);
        out.resize(CONTENT_LEN, 0);
        out
    }

    /// Decodes a content. `None` if it is malformed or of a newer version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != CONTENT_LEN {
            return None;
        }
        let (kind, rest) = bytes.split_first()?;
        let kind = Kind::from_byte(*kind)?;
        let (written, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (reach, rest) = Reach::decode(rest)?;
        let (len, rest) = rest.split_first_chunk()?;
        let (body, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        Some(Self {
            kind,
            written: u64::from_be_bytes(*written),
            expires: u64::from_be_bytes(*expires),
            reach: reach.decode_custom(rest),
            body: Zeroizing::new(body.to_vec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::reach::MAX_ADDRESSES;
    use crate::relay_addr::RelayAddr;
    use crate::way::CustomWay;

    fn reach(addresses: u16, relays: usize) -> Reach {
        let addresses = (0..addresses).map(|n| SocketAddr::from(([192, 0, 2, 1], n + 1)));
        let relay = RelayAddr::new("relay.example", 443, [1; 32], [2; 16]).unwrap();
        Reach::default().with(addresses).with(vec![relay; relays])
    }

    fn content(reach: Reach, body: usize) -> Content {
        Content::new(Kind::Reach, 1000, 600, reach).with_body(Zeroizing::new(vec![9; body]))
    }

    #[test]
    fn contents_survive_and_have_one_length() {
        for content in [
            Content::withdrawn(5),
            content(reach(3, 2), 0),
            content(reach(0, 2), 100),
            content(reach(16, 1), 400),
            content(reach(2, 1).with([CustomWay::new(300, [7; 40]).unwrap()]), 400),
        ] {
            let bytes = content.encode();
            assert_eq!(bytes.len(), CONTENT_LEN);
            assert_eq!(Content::decode(&bytes), Some(content));
        }
    }

    #[test]
    fn freshness_bears_ten_minutes_of_clock_difference_and_no_more() {
        let content = content(reach(1, 0), 0);
        assert!(content.is_fresh(1000 - 600) && content.is_fresh(1600 + 600));
        assert!(!content.is_fresh(1000 - 601), "from too far ahead");
        assert!(!content.is_fresh(1600 + 601), "expired");
        let mut endless = content.clone();
        endless.expires = 1000 + MAX_LIFE_SECONDS + 1;
        assert!(!endless.is_fresh(1000), "no record is good for so long");
        endless.expires = 999;
        assert!(!endless.is_fresh(1000), "over before it was written");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), CONTENT_LEN), at in 0..60_usize, n: u8) {
            let _ = Content::decode(&bytes);
            let mut sealed_right = content(reach(2, 2), 50).encode();
            sealed_right[at] = n;
            if let Some(decoded) = Content::decode(&sealed_right) {
                prop_assert!(decoded.reach.addresses().len() <= MAX_ADDRESSES);
            }
        }
    }
}
