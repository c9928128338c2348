//! DER, value by value, and recursively into constructed values and octet strings.
//!
//! Invariant: each value has one encoding, so writing a decoded value returns the original bytes.

use wraith_suite::encoding::der::{
    BIT_STRING, INTEGER, NULL, OBJECT_IDENTIFIER, OCTET_STRING, Reader, Writer,
};

/// Deeper than keys are nested. Decoders of keys never recurse.
const DEPTH_MAX: usize = 8;

pub(crate) fn run(input: &[u8]) {
    walk(Reader::new(input), DEPTH_MAX);
}

fn walk(mut reader: Reader<'_>, depth: usize) {
    while let Some(tag) = reader.peek() {
        let mut again = reader.clone();
        let Ok(element) = reader.element() else { return };
        let (found, content) = again.any().expect("it is a value");
        assert_eq!((found, again.peek()), (tag, reader.peek()));
        let mut writer = Writer::new();
        writer.write(tag, content);
        assert_eq!(*writer.finish(), *element);
        typed(element, tag);
        // A constructed value, or a string that may contain one.
        if depth > 0 && (tag & 0x20 != 0 || tag == OCTET_STRING) {
            walk(Reader::new(content), depth - 1);
        }
    }
    reader.finish().expect("there is no next value");
}

/// Checks that a value read as the type of its tag is written back to the same bytes.
fn typed(element: &[u8], tag: u8) {
    let mut reader = Reader::new(element);
    let mut writer = Writer::new();
    let written = match tag {
        INTEGER => reader.unsigned().map(|number| writer.unsigned(number)),
        BIT_STRING => reader.bit_string().map(|bytes| writer.bit_string(bytes)),
        OCTET_STRING => reader.octet_string().map(|bytes| writer.octet_string(bytes)),
        OBJECT_IDENTIFIER => reader.oid().map(|oid| writer.oid(oid)),
        NULL => reader.null().map(|()| writer.null()),
        _ => return,
    };
    if written.is_ok() {
        assert_eq!(*writer.finish(), *element);
    }
    if tag == INTEGER
        && let Ok(number) = Reader::new(element).small()
    {
        let mut writer = Writer::new();
        writer.small(number);
        assert_eq!(*writer.finish(), *element);
    }
}
