//! Stream ids (SPEC §6): id = 2 × sequence + (1 if the responder opened it).

use std::fmt;

/// This side's role in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that sends H1.
    Initiator,
    /// The side that answers it.
    Responder,
}

impl Role {
    /// Returns the other side.
    pub const fn peer(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }
}

/// Identifies one stream of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

impl StreamId {
    /// Returns the id of the `sequence`-th stream (from 0) that `opener` opens. `sequence` is below
    /// 2^61.
    pub const fn new(opener: Role, sequence: u64) -> Self {
        Self(sequence << 1 | matches!(opener, Role::Responder) as u64)
    }

    /// Returns the side that opened the stream.
    pub const fn opener(self) -> Role {
        if self.0 & 1 == 0 { Role::Initiator } else { Role::Responder }
    }

    /// Returns the number of streams that this side opened before it.
    pub const fn sequence(self) -> u64 {
        self.0 >> 1
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_who_opened_it_and_when() {
        let id = StreamId::new(Role::Responder, 7);
        assert_eq!((id.0, id.opener(), id.sequence()), (15, Role::Responder, 7));
        assert_eq!(StreamId::new(Role::Initiator, 0), StreamId(0));
    }
}
