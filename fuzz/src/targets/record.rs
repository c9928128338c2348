//! Headers of data records. Invariant: headers have fixed lengths, and bodies fit the buffers.

use wraith_transfer::record::{HEADER_BYTES_MAX, Header, RECORD_BODY_BYTES_MAX};

pub(crate) fn run(input: &[u8]) {
    let Some(&kind) = input.first() else {
        assert!(Header::parse(input).is_err());
        return;
    };
    let Ok(len) = Header::len_of(kind) else {
        assert!(Header::parse(input).is_err());
        return;
    };
    assert!(len <= HEADER_BYTES_MAX);
    let Some(bytes) = input.get(..len) else {
        assert!(Header::parse(input).is_err(), "it is cut off");
        return;
    };
    let Ok(header) = Header::parse(bytes) else { return };
    assert!(header.body_len() <= RECORD_BODY_BYTES_MAX);
    let mut again = Vec::new();
    header.encode(&mut again);
    assert_eq!(again, bytes);
}
