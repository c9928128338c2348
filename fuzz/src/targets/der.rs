//! DER, value by value and into each that has others inside: what is read has one spelling, so writing it again gives the bytes that were there.

use wraith_crypto::encoding::der::{
    BIT_STRING, INTEGER, NULL, OBJECT_IDENTIFIER, OCTET_STRING, Reader, Writer,
};

/// Deeper than keys are, which never recurse.
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
        // A constructed value, or a string in which one may be.
        if depth > 0 && (tag & 0x20 != 0 || tag == OCTET_STRING) {
            walk(Reader::new(content), depth - 1);
        }
    }
    reader.finish().expect("there is no next value");
}

/// What is read as what it says it is, is written as it was.
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
