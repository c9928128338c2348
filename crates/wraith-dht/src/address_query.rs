//! Query for this machine's external address: a node reports the source address of the query (`ip`
//! of BEP 42). The query must leave from the socket in question, which belongs to the caller,
//! because a NAT gives each socket its own port.
//!
//! Invariant: an answer is accepted only if it repeats the query's transaction ID. Even then it is
//! one node's claim; the caller tests the address with a handshake or a probe.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::bencode::{entry, whole_string};
use crate::krpc::{Query, TransactionId};

/// One query to one node.
#[derive(Debug)]
pub struct AddressQuery {
    transaction: TransactionId,
    datagram: Vec<u8>,
}

impl AddressQuery {
    /// Creates a query with a random node ID, which does not identify this client.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn new() -> Result<Self, getrandom::Error> {
        let (mut own, mut target, mut transaction) = ([0; 20], [0; 20], [0; 4]);
        getrandom::fill(&mut own)?;
        getrandom::fill(&mut target)?;
        getrandom::fill(&mut transaction)?;
        let datagram = Query::FindNode(&target).encode(&own, transaction);
        Ok(Self { transaction, datagram })
    }

    /// Returns the datagram to send.
    pub fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// Returns the source address that the node saw. `None` if `answer` does not belong to this
    /// query or has no address.
    pub fn observed_address(&self, answer: &[u8]) -> Option<SocketAddrV4> {
        let text = |key: &[u8]| entry(answer, key).and_then(whole_string);
        if text(b"t")? != self.transaction || text(b"y")? != b"r" {
            return None;
        }
        let (ip, port) = text(b"ip")?.split_first_chunk::<4>()?;
        let port = u16::from_be_bytes(port.try_into().ok()?);
        (port != 0).then(|| SocketAddrV4::new(Ipv4Addr::from(*ip), port))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bencode::Writer;

    fn answer(question: &AddressQuery, ip: &[u8]) -> Vec<u8> {
        let found = Writer::dict().string("id", &[1; 20]).end();
        let answer = Writer::dict().string("ip", ip).nested("r", &found);
        answer.string("t", &question.transaction).string("y", b"r").end()
    }

    #[test]
    fn the_observed_address_is_read_from_the_answer() {
        let [ours, other] = [(); 2].map(|()| AddressQuery::new().unwrap());
        let said = answer(&ours, &[192, 0, 2, 7, 0x12, 0x34]);
        assert_eq!(ours.observed_address(&said), Some("192.0.2.7:4660".parse().unwrap()));
        assert_eq!(other.observed_address(&said), None, "to another question");
        for nonsense in [&[][..], &[1; 5], &[1; 7], &[1; 18], &[192, 0, 2, 7, 0, 0]] {
            assert_eq!(ours.observed_address(&answer(&ours, nonsense)), None);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_answers_do_not_panic(bytes: Vec<u8>) {
            prop_assert_eq!(AddressQuery::new().unwrap().observed_address(&bytes), None);
        }
    }
}
