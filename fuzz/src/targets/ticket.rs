//! Tickets as text and as bytes; the first byte selects the form.
//!
//! If the first byte is 0, the target appends a checksum, which otherwise only genuine tickets
//! have.

use wraith_crypto::kdf;
use wraith_discovery::Ticket;

pub(crate) fn run(input: &[u8]) {
    let ticket = match input.split_first() {
        Some((0, body)) => {
            let check = kdf::derive("wraith/1 ticket check", body);
            Ticket::decode(&[body, &check[..4]].concat()).ok()
        }
        Some((1, bytes)) => Ticket::decode(bytes).ok(),
        _ => std::str::from_utf8(input).ok().and_then(|text| text.parse().ok()),
    };
    let Some(ticket) = ticket else { return };
    assert_eq!(Ticket::decode(&ticket.encode()).as_ref(), Ok(&ticket));
    assert_eq!(ticket.to_string().parse().as_ref(), Ok(&ticket));
    assert!(ticket.addresses().len() <= wraith_discovery::MAX_ADDRESSES);
    // A ticket is a list of ways within the bounds of this program, also if it was made without.
    let again = ticket.at(ticket.reach().clone());
    assert!(again.reach().custom().count() <= wraith_discovery::MAX_CUSTOM_WAYS);
    assert_eq!(again.addresses(), ticket.addresses());
}
