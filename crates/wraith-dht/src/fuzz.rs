//! Fuzz targets for node messages. They panic on a defect and are not part of the public API.

use wraith_discovery::MAX_VALUE_LEN;

use crate::address_query::AddressQuery;
use crate::krpc::{Answer, MAX_NODES, MAX_TOKEN_LEN, decode};

/// Decodes an answer. Accepted fields stay within their bounds, and no record verifies under a key
/// that did not sign it.
pub fn answer(datagram: &[u8]) {
    if let Ok(question) = AddressQuery::new() {
        question.observed_address(datagram);
    }
    let Some((_, Answer::Response(found))) = decode(datagram) else { return };
    assert!(found.nodes.len() <= MAX_NODES);
    assert!(found.token.is_none_or(|token| token.len() <= MAX_TOKEN_LEN));
    if let Some(record) = found.record {
        assert!(record.verify(&[0; 32]).is_none(), "nobody has that key");
        let stored = record.verify(record.key);
        assert!(stored.is_none_or(|stored| stored.value.len() <= MAX_VALUE_LEN));
    }
}
