//! What a record says, before it is sealed:
//!
//! ```text
//! kind(1) ‖ written(8) ‖ expires(8) ‖ reach ‖ length(2) ‖ body ‖ zeros
//! ```
//!
//! Times are unix seconds. The body is opaque here.

use zeroize::Zeroizing;

use super::hour::CLOCK_SKEW_SECONDS;
use crate::reach::Reach;

/// Bytes of every content; the longest ticket, who it is for and a few relays fit.
pub const CONTENT_LEN: usize = super::VALUE_LEN - super::slot::SALT_LEN - wraith_crypto::TAG_BYTES;
/// No record is good for longer than this after it was written: a crash leaves none behind for longer.
pub const MAX_LIFE_SECONDS: u64 = 3600;

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Nothing any more: its writer has withdrawn it.
    Withdrawn = 0,
    /// Its writer can be reached so.
    Here = 1,
    /// Its writer wants to be reached so, now.
    Call = 2,
    /// A code waits; who made it, and what became of who joined.
    Offer = 3,
    /// Somebody knows the words.
    Join = 4,
}

/// What a record says. The body may hold secrets, so it is wiped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub kind: Kind,
    pub written: u64,
    pub expires: u64,
    pub reach: Reach,
    pub body: Zeroizing<Vec<u8>>,
}

impl Content {
    /// One that is written at `now` and good for `life` seconds.
    pub fn new(kind: Kind, now: u64, life: u64, reach: Reach) -> Self {
        let expires = now.saturating_add(life.min(MAX_LIFE_SECONDS));
        Self { kind, written: now, expires, reach, body: Zeroizing::default() }
    }

    /// The same, with this body.
    pub fn with_body(mut self, body: Zeroizing<Vec<u8>>) -> Self {
        self.body = body;
        self
    }

    /// What replaces a record that is withdrawn.
    pub fn withdrawn(now: u64) -> Self {
        Self::new(Kind::Withdrawn, now, MAX_LIFE_SECONDS, Reach::default())
    }

    /// Whether it is good at `now`, by a clock that may differ from its writer's.
    pub fn is_fresh(&self, now: u64) -> bool {
        self.written <= now.saturating_add(CLOCK_SKEW_SECONDS)
            && self.expires.saturating_add(CLOCK_SKEW_SECONDS) >= now
            && self.expires >= self.written
            && self.expires - self.written <= MAX_LIFE_SECONDS
    }

    /// [`CONTENT_LEN`] bytes. Of where its writer can be reached, what has no room beside the body is left out.
    ///
    /// # Panics
    /// If the body does not fit, which every body here does.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(CONTENT_LEN));
        out.push(self.kind as u8);
        out.extend_from_slice(&self.written.to_be_bytes());
        out.extend_from_slice(&self.expires.to_be_bytes());
        let room = CONTENT_LEN.checked_sub(out.len() + 2 + self.body.len());
        self.reach.encode(room.expect("bodies leave room"), &mut out);
        out.extend_from_slice(&(self.body.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.body);
        out.resize(CONTENT_LEN, 0);
        out
    }

    /// What these bytes say; None if nothing that this version knows.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != CONTENT_LEN {
            return None;
        }
        let (kind, rest) = bytes.split_first()?;
        let kind = match kind {
            0 => Kind::Withdrawn,
            1 => Kind::Here,
            2 => Kind::Call,
            3 => Kind::Offer,
            4 => Kind::Join,
            _ => return None,
        };
        let (written, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (reach, rest) = Reach::decode(rest)?;
        let (len, rest) = rest.split_first_chunk()?;
        let body = rest.get(..usize::from(u16::from_be_bytes(*len)))?;
        Some(Self {
            kind,
            written: u64::from_be_bytes(*written),
            expires: u64::from_be_bytes(*expires),
            reach,
            body: Zeroizing::new(body.to_vec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::relay_addr::RelayAddr;
    use crate::ticket::MAX_ADDRESSES;

    fn reach(addresses: u16, relays: usize) -> Reach {
        let addresses = (0..addresses).map(|n| SocketAddr::from(([192, 0, 2, 1], n + 1)));
        let relay = RelayAddr::new("relay.example", 443, [1; 32], [2; 16]).unwrap();
        Reach { addresses: addresses.collect(), relays: vec![relay; relays] }
    }

    fn content(reach: Reach, body: usize) -> Content {
        Content::new(Kind::Here, 1000, 600, reach).with_body(Zeroizing::new(vec![9; body]))
    }

    #[test]
    fn contents_survive_and_have_one_length() {
        for content in [
            Content::withdrawn(5),
            content(reach(3, 2), 0),
            content(reach(0, 2), 100),
            content(reach(16, 1), 400),
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
                prop_assert!(decoded.reach.addresses.len() <= MAX_ADDRESSES);
            }
        }
    }
}
