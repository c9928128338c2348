//! Bodies of the records of a long code.
//!
//! ```text
//! offer = creator(32) ‖ side(1) ‖ ended(1) ‖ joiner(32) ‖ length(2) ‖ ticket      joiner is zero before the first one
//! join  = joiner(32) ‖ side(1) ‖ length(2) ‖ ticket                               ticket is empty unless the joiner has it
//! ```
//!
//! `side` is the side with the ticket, as in a short code: 1 is the creator, 2 the joiner. `ended`
//! is a refusal, or 0.

use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use crate::code::TicketSide;
use crate::place::Refusal;
use crate::ticket::MAX_LEN;

/// The creator's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub creator: NodeId,
    pub side: TicketSide,
    /// Reason why new joiners are refused.
    pub ended: Option<Refusal>,
    /// The joiner admitted last, and its ticket.
    pub served: Option<(NodeId, Zeroizing<Vec<u8>>)>,
}

/// A joiner's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    pub joiner: NodeId,
    pub side: TicketSide,
    pub ticket: Zeroizing<Vec<u8>>,
}

const NOBODY: [u8; 32] = [0; 32];

impl Offer {
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(self.creator.0.to_vec());
        out.push(side_byte(self.side));
        out.push(self.ended.map_or(0, Refusal::byte));
        let (joiner, ticket) = match &self.served {
            Some((joiner, ticket)) => (joiner.0, &ticket[..]),
            None => (NOBODY, &[][..]),
        };
        out.extend_from_slice(&joiner);
        push_ticket(&mut out, ticket);
        out
    }

    pub fn decode(body: &[u8]) -> Option<Self> {
        let (creator, rest) = body.split_first_chunk()?;
        let ([side, ended], rest) = rest.split_first_chunk()?;
        let (joiner, rest) = rest.split_first_chunk()?;
        let ticket = ticket(rest)?;
        let ended = match ended {
            0 => None,
            byte => Some(Refusal::from_byte(*byte)?),
        };
        let served = (*joiner != NOBODY).then_some((NodeId(*joiner), ticket));
        Some(Self { creator: NodeId(*creator), side: side_of(*side)?, ended, served })
    }
}

impl Join {
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(self.joiner.0.to_vec());
        out.push(side_byte(self.side));
        push_ticket(&mut out, &self.ticket);
        out
    }

    pub fn decode(body: &[u8]) -> Option<Self> {
        let (joiner, rest) = body.split_first_chunk()?;
        let (side, rest) = rest.split_first()?;
        let (side, ticket) = (side_of(*side)?, ticket(rest)?);
        let fits = *joiner != NOBODY && ticket.is_empty() == (side == TicketSide::Creator);
        fits.then_some(Self { joiner: NodeId(*joiner), side, ticket })
    }
}

const fn side_byte(side: TicketSide) -> u8 {
    match side {
        TicketSide::Creator => 1,
        TicketSide::Joiner => 2,
    }
}

const fn side_of(byte: u8) -> Option<TicketSide> {
    match byte {
        1 => Some(TicketSide::Creator),
        2 => Some(TicketSide::Joiner),
        _ => None,
    }
}

fn push_ticket(out: &mut Vec<u8>, ticket: &[u8]) {
    assert!(ticket.len() <= MAX_LEN, "the ticket exceeds its maximum length");
    out.extend_from_slice(&(ticket.len() as u16).to_be_bytes());
    out.extend_from_slice(ticket);
}

/// Parses the ticket at the end.
fn ticket(bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (len, ticket) = bytes.split_first_chunk()?;
    let fits = ticket.len() == usize::from(u16::from_be_bytes(*len)) && ticket.len() <= MAX_LEN;
    fits.then(|| Zeroizing::new(ticket.to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_survive() {
        let ticket = Zeroizing::new(vec![7; MAX_LEN]);
        let (creator, joiner) = (NodeId([1; 32]), NodeId([2; 32]));
        for served in [None, Some((joiner, ticket.clone())), Some((joiner, Zeroizing::default()))] {
            for ended in [None, Some(Refusal::Used), Some(Refusal::Expired)] {
                let served = served.clone();
                let offer = Offer { creator, side: TicketSide::Creator, ended, served };
                assert_eq!(Offer::decode(&offer.encode()), Some(offer));
            }
        }
        for (side, ticket) in
            [(TicketSide::Joiner, ticket), (TicketSide::Creator, Zeroizing::default())]
        {
            let join = Join { joiner, side, ticket };
            assert_eq!(Join::decode(&join.encode()), Some(join));
        }
    }

    #[test]
    fn a_join_record_has_a_ticket_exactly_if_its_side_has_it() {
        let ticket = Zeroizing::new(vec![7]);
        let join = Join { joiner: NodeId([2; 32]), side: TicketSide::Creator, ticket };
        assert_eq!(Join::decode(&join.encode()), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let _ = (Offer::decode(&bytes), Join::decode(&bytes));
        }
    }
}
