//! The envelope of a message on the local network: a packet sealed with a key derived from the
//! nameplate (the number in a code). Contact messages are packets already and have no envelope.

use super::packet::{OPENING_LEN, PACKET_LEN, open, seal};
use crate::place::{PlaceError, Topic};

/// Type byte of the first message about a nameplate. Packets omit it (SPEC §11.4, §11.6).
const OPENING_KIND: u8 = 1;

/// Kind of envelope for a topic.
#[derive(Clone, Copy, Debug)]
pub enum Envelope {
    Nameplate(u32),
    Contacts,
}

/// A message and the first message of its conversation. For contacts both are the same.
#[derive(Debug)]
pub struct OpenedPacket {
    pub opening: Vec<u8>,
    pub message: Vec<u8>,
}

impl Envelope {
    /// # Errors
    /// The topic is of a single contact, which the local network does not support.
    pub fn of(topic: Topic) -> Result<Self, PlaceError> {
        match topic {
            Topic::Nameplate { nameplate, .. } => Ok(Self::Nameplate(nameplate)),
            Topic::AnyContact => Ok(Self::Contacts),
            Topic::Contact(_) => Err(PlaceError::Protocol),
        }
    }

    /// Returns the nameplate, if there is one.
    pub const fn nameplate(self) -> Option<u32> {
        match self {
            Self::Nameplate(nameplate) => Some(nameplate),
            Self::Contacts => None,
        }
    }

    /// Wraps a message of the conversation that started with `opening`.
    ///
    /// # Errors
    /// The system has no randomness, or the messages are malformed.
    pub fn wrap(self, opening: &[u8], message: &[u8]) -> Result<[u8; PACKET_LEN], PlaceError> {
        let Self::Nameplate(nameplate) = self else {
            return message.try_into().map_err(|_| PlaceError::Protocol);
        };
        let hello = opening.strip_prefix(&[OPENING_KIND]);
        let hello: &[u8; OPENING_LEN] =
            hello.and_then(|hello| hello.try_into().ok()).ok_or(PlaceError::Protocol)?;
        let message = if message == opening { &[] } else { message };
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|_| PlaceError::no_randomness())?;
        seal(nameplate, salt, hello, message).ok_or(PlaceError::Protocol)
    }

    /// Opens a packet of this kind. `None` for any other.
    pub fn unwrap(self, packet: &[u8]) -> Option<OpenedPacket> {
        match self {
            Self::Contacts => (packet.len() == PACKET_LEN)
                .then(|| OpenedPacket { opening: packet.to_vec(), message: packet.to_vec() }),
            Self::Nameplate(nameplate) => {
                let (hello, message) = open(nameplate, packet)?;
                let opening = [&[OPENING_KIND][..], &hello].concat();
                let message = if message.is_empty() { opening.clone() } else { message };
                Some(OpenedPacket { opening, message })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_and_unwrapping_preserves_message_and_opening() {
        let envelope = Envelope::Nameplate(7);
        let opening = [&[1][..], &[8; OPENING_LEN]].concat();
        for message in [opening.clone(), vec![3; 33], vec![4; 409]] {
            let packet = envelope.wrap(&opening, &message).unwrap();
            let opened = envelope.unwrap(&packet).unwrap();
            assert_eq!((opened.opening, opened.message), (opening.clone(), message));
            assert!(Envelope::Nameplate(8).unwrap(&packet).is_none());
        }
    }

    #[test]
    fn oversized_messages_are_refused() {
        let opening = [&[1][..], &[8; OPENING_LEN]].concat();
        let wrap = |opening: &[u8], message: &[u8]| Envelope::Nameplate(7).wrap(opening, message);
        assert_eq!(wrap(&opening, &[0; 410]), Err(PlaceError::Protocol));
        assert_eq!(wrap(&opening[1..], &[0; 4]), Err(PlaceError::Protocol));
        assert_eq!(Envelope::Contacts.wrap(&[], &[0; 4]), Err(PlaceError::Protocol));
        assert!(Envelope::of(Topic::Contact([0; 32])).is_err());
    }
}
