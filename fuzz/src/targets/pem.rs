//! PEM. Invariant: a block has one encoding, apart from its line endings.

use wraith_suite::encoding::pem;

const LABELS: [&str; 2] = ["PRIVATE KEY", "PUBLIC KEY"];

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let read = LABELS.map(|label| pem::decode(label, text));
    assert!(read.iter().filter(|read| read.is_ok()).count() <= 1, "two labels");
    for (label, bytes) in LABELS.iter().zip(read) {
        let Ok(bytes) = bytes else { continue };
        let again = pem::encode(label, &bytes);
        let plain = text.replace("\r\n", "\n");
        assert_eq!(plain.strip_suffix('\n').unwrap_or(&plain), again.trim_end());
        assert_eq!(pem::decode(label, &again).as_ref(), Ok(&bytes));
    }
}
