//! KRPC messages of a client: BEP 5, and BEP 44 for records. Every query is marked as coming from a
//! read-only node (BEP 43), so no node enters this client into its routing table.

use std::net::{Ipv4Addr, SocketAddrV4};

use wraith_crypto::NodeId;
use wraith_discovery::{MAX_VALUE_LEN, RecordKey, RecordSeed, StoredRecord};

use crate::bencode::{Writer, entry, whole_integer, whole_string};
use crate::id::{ID_LEN, Id};

/// Length of a compact node entry in bytes.
const COMPACT_NODE_LEN: usize = ID_LEN + 6;
/// Most nodes read from one answer. BEP 5 has 8; some nodes return 20.
pub const MAX_NODES: usize = 20;
/// Longest token accepted. Tokens have a few bytes and are echoed unchanged.
pub const MAX_TOKEN_LEN: usize = 64;

/// Matches an answer to its query.
pub type TransactionId = [u8; 4];

/// The queries of a client.
#[derive(Clone, Debug)]
pub enum Query<'a> {
    /// Requests the nodes closest to an ID. Every node can answer.
    FindNode(&'a Id),
    /// Requests the record at a target, and the nodes closest to it.
    Get(&'a Id),
    /// Stores a record at a target.
    Put { target: &'a Id, token: &'a [u8], item: &'a SignedRecord },
}

impl Query<'_> {
    /// Encodes the datagram. `own` is the node ID that this client presents.
    pub fn encode(&self, own: &Id, transaction: TransactionId) -> Vec<u8> {
        let (name, arguments) = match self {
            Self::FindNode(target) => {
                ("find_node", Writer::dict().string("id", own).string("target", *target).end())
            }
            Self::Get(target) => {
                ("get", Writer::dict().string("id", own).string("target", *target).end())
            }
            Self::Put { target, token, item } => {
                // Some nodes require the target in this query although it follows from the key.
                let arguments = Writer::dict()
                    .string("id", own)
                    .string("k", &item.key)
                    .integer("seq", item.record.seq)
                    .string("sig", &item.signature)
                    .string("target", *target)
                    .string("token", token)
                    .string("v", &item.record.value);
                ("put", arguments.end())
            }
        };
        Writer::dict()
            .nested("a", &arguments)
            .string("q", name.as_bytes())
            .integer("ro", 1)
            .string("t", &transaction)
            .string("y", b"q")
            .end()
    }
}

/// A record with its BEP 44 key and signature.
#[derive(Clone, Debug)]
pub struct SignedRecord {
    key: RecordKey,
    record: StoredRecord,
    signature: [u8; 64],
}

impl SignedRecord {
    /// Signs `record` with the key of `seed`.
    pub fn new(seed: &RecordSeed, record: StoredRecord) -> Self {
        let signature = seed.signer().sign(&signed_text(record.seq, &bencoded(&record.value)));
        Self { key: seed.key(), record, signature }
    }
}

/// Returns the signed text: the entries `seq` and `v` as encoded in a message.
fn signed_text(seq: i64, bencoded_value: &[u8]) -> Vec<u8> {
    [format!("3:seqi{seq}e1:v").as_bytes(), bencoded_value].concat()
}

fn bencoded(value: &[u8]) -> Vec<u8> {
    [format!("{}:", value.len()).as_bytes(), value].concat()
}

/// A node's answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The node performed the query.
    Response(Box<Response<'a>>),
    /// The node refused with this code. BEP 44: 302 means that it has a record with a higher
    /// sequence number.
    Error(i64),
}

/// Content of a successful answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Response<'a> {
    /// The node's claimed ID.
    pub id: Id,
    /// Token required for a put to this node.
    pub token: Option<&'a [u8]>,
    /// Closer nodes that it names.
    pub nodes: Vec<(Id, SocketAddrV4)>,
    /// A record that claims the requested key.
    pub record: Option<ClaimedRecord<'a>>,
}

/// A record before verification.
#[derive(Debug, PartialEq, Eq)]
pub struct ClaimedRecord<'a> {
    pub key: &'a RecordKey,
    seq: i64,
    signature: &'a [u8; 64],
    /// Value as encoded in the message.
    bencoded_value: &'a [u8],
}

impl ClaimedRecord<'_> {
    /// Returns the record if it verifies under `key`.
    pub fn verify(&self, key: &RecordKey) -> Option<StoredRecord> {
        let value = whole_string(self.bencoded_value).filter(|v| v.len() <= MAX_VALUE_LEN)?;
        if self.key != key {
            return None;
        }
        let text = signed_text(self.seq, self.bencoded_value);
        NodeId(*key).verify(&text, self.signature).ok()?;
        Some(StoredRecord { seq: self.seq, value: value.to_vec() })
    }
}

/// Returns the transaction and content of an answer, or `None` for any other datagram.
pub fn decode(datagram: &[u8]) -> Option<(TransactionId, Answer<'_>)> {
    let text = |key: &[u8]| entry(datagram, key).and_then(whole_string);
    let transaction = text(b"t")?.try_into().ok()?;
    match text(b"y")? {
        b"r" => {
            let response = response(entry(datagram, b"r")?)?;
            Some((transaction, Answer::Response(Box::new(response))))
        }
        b"e" => {
            let error = entry(datagram, b"e")?.strip_prefix(b"l")?;
            let (code, _) = crate::bencode::value(error)?;
            Some((transaction, Answer::Error(whole_integer(code)?)))
        }
        _ => None,
    }
}

fn response(answer: &[u8]) -> Option<Response<'_>> {
    let text = |key: &[u8]| entry(answer, key).and_then(whole_string);
    let nodes = text(b"nodes").unwrap_or_default().chunks_exact(COMPACT_NODE_LEN);
    Some(Response {
        id: text(b"id")?.try_into().ok()?,
        token: text(b"token").filter(|token| token.len() <= MAX_TOKEN_LEN),
        nodes: nodes.take(MAX_NODES).filter_map(compact_node).collect(),
        record: claimed_record(answer),
    })
}

fn claimed_record(answer: &[u8]) -> Option<ClaimedRecord<'_>> {
    let text = |key: &[u8]| entry(answer, key).and_then(whole_string);
    Some(ClaimedRecord {
        key: text(b"k")?.try_into().ok()?,
        seq: entry(answer, b"seq").and_then(whole_integer)?,
        signature: text(b"sig")?.try_into().ok()?,
        bencoded_value: entry(answer, b"v")?,
    })
}

fn compact_node(bytes: &[u8]) -> Option<(Id, SocketAddrV4)> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (ip, port) = rest.split_first_chunk::<4>()?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    Some((*id, SocketAddrV4::new(Ipv4Addr::from(*ip), port)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seed() -> RecordSeed {
        RecordSeed::new([7; 32])
    }

    /// Encodes the answer of a node that has this record.
    fn answer(item: &SignedRecord) -> Vec<u8> {
        let nodes: Vec<u8> =
            (0..30).flat_map(|n| [[n; 20].to_vec(), vec![127, 0, 0, 1, 1, n]].concat()).collect();
        let response = Writer::dict()
            .string("id", &[1; 20])
            .string("k", &item.key)
            .string("nodes", &nodes)
            .integer("seq", item.record.seq)
            .string("sig", &item.signature)
            .string("token", b"token")
            .string("v", &item.record.value)
            .end();
        Writer::dict().nested("r", &response).string("t", b"abcd").string("y", b"r").end()
    }

    fn item(len: usize) -> SignedRecord {
        SignedRecord::new(&seed(), StoredRecord { seq: 42, value: vec![9; len] })
    }

    fn record_of(datagram: &[u8], key: &RecordKey) -> Option<StoredRecord> {
        match decode(datagram)? {
            (_, Answer::Response(response)) => response.record?.verify(key),
            (_, Answer::Error(_)) => None,
        }
    }

    #[test]
    fn only_records_of_the_requested_key_verify() {
        let answer = answer(&item(900));
        let record = record_of(&answer, &seed().key());
        assert_eq!(record, Some(StoredRecord { seq: 42, value: vec![9; 900] }));
        assert_eq!(record_of(&answer, &RecordSeed::new([8; 32]).key()), None, "a foreign key");
    }

    #[test]
    fn oversized_and_forged_records_are_rejected() {
        assert_eq!(record_of(&answer(&item(1001)), &seed().key()), None, "oversized");
        let mut forged = item(900);
        forged.record.seq += 1;
        assert_eq!(record_of(&answer(&forged), &seed().key()), None, "another sequence number");
        let mut forged = item(900);
        forged.record.value[0] ^= 1;
        assert_eq!(record_of(&answer(&forged), &seed().key()), None, "another value");
    }

    #[test]
    fn nodes_per_answer_are_limited() {
        let answer = answer(&item(1));
        let Some((transaction, Answer::Response(response))) = decode(&answer) else { panic!() };
        assert_eq!(
            (transaction, response.token, response.id),
            (*b"abcd", Some(&b"token"[..]), [1; 20])
        );
        assert_eq!(response.nodes.len(), MAX_NODES);
        assert_eq!(response.nodes[2], ([2; 20], SocketAddrV4::new(Ipv4Addr::LOCALHOST, 258)));
    }

    #[test]
    fn the_signature_is_that_of_bep_44() {
        // Text of BEP 44's test vector 1.
        let text = signed_text(1, &bencoded(b"Hello World!"));
        assert_eq!(text, b"3:seqi1e1:v12:Hello World!");
    }

    #[test]
    fn error_messages_are_decoded() {
        let refusal = b"d1:eli302e3:olde1:t4:abcd1:y1:ee";
        assert_eq!(decode(refusal), Some((*b"abcd", Answer::Error(302))));
        assert_eq!(decode(b"d1:q4:ping1:t4:abcd1:y1:qe"), None, "a question is no answer");
    }

    proptest! {
        #[test]
        fn modified_answers_do_not_panic_or_yield_another_record(at: prop::sample::Index, byte: u8) {
            let mut bytes = answer(&item(100));
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Some(record) = record_of(&bytes, &seed().key()) {
                prop_assert_eq!(record, StoredRecord { seq: 42, value: vec![9; 100] });
            }
        }

        #[test]
        fn arbitrary_datagrams_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
        }
    }
}
