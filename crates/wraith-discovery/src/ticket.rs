//! The ticket codec of SPEC §2. A ticket is one line of text with the sender's NodeId (its public
//! key), the ways to it, and the capability (the secret of the transfer).
//!
//! ```text
//! wraith: base32( version(1) | NodeId(32) | capability(16) | count(1) | address* | relays | suites | ways | check(4) )
//! ```
//!
//! | version | relays | suites | ways of other carriers |
//! |---|---|---|---|
//! | 1, 2 | of an older handshake | | |
//! | 3 | omitted | omitted: those of the default policy | none |
//! | 4 | one or more | omitted | none |
//! | 5; 6, of a service | any number | one byte | none |
//! | 7; 8, of a service | any number | one byte | one or more, up to the check |
//!
//! The check distinguishes a mistyped ticket from a correctly typed ticket that does not work, so
//! that users can tell the two apart. It authenticates nothing: the handshake proves the NodeId,
//! and the sender verifies the capability.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use thiserror::Error;
use wraith_crypto::Policy;
use wraith_crypto::identity::NodeId;
use wraith_crypto::kdf;

use crate::Capability;
use crate::reach::Reach;
use crate::relay_addr::{MAX_RELAYS, RelayAddr, RelayAddrError};
use crate::way::CustomWay;

/// Version of a ticket without relays.
pub const VERSION: u8 = 3;
/// Version of a ticket with relays.
const VERSION_WITH_RELAYS: u8 = 4;
/// Version of a ticket whose sender has another policy than the default one.
const VERSION_WITH_SUITES: u8 = 5;
/// Version of a ticket of a service.
const VERSION_OF_SERVICE: u8 = 6;
/// Versions of tickets with ways of other carriers: of an offer, and of a service.
const VERSION_WITH_WAYS: u8 = 7;
const VERSION_OF_SERVICE_WITH_WAYS: u8 = 8;

/// Most addresses in a ticket. They must also fit into its length: 40 of IPv4, or 16 of IPv6.
pub const MAX_ADDRESSES: usize = 40;

const PREFIX: &str = "wraith:";
const CHECK_LEN: usize = 4;
const CHECK_CONTEXT: &str = "wraith/1 ticket check";
const FAMILY_IPV4: u8 = 4;
const FAMILY_IPV6: u8 = 6;
const HEAD_LEN: usize = 1 + 32 + Capability::LEN + 1;
/// Longest binary form: the content of a code's welcome (SPEC §11.2). Relays and other ways reduce
/// the number of addresses.
pub(crate) const MAX_LEN: usize = 358;
/// Longest text accepted as a ticket, with room for spaces and line breaks that a chat program
/// inserts.
const MAX_TEXT_LEN: usize = 4 * MAX_LEN;

/// Kind of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketKind {
    /// An offer, which a receiver fetches.
    Offer,
    /// A service, to which a program connects.
    Service,
}

/// The sender, the ways to it, and the secret that names its offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    kind: TicketKind,
    node_id: NodeId,
    capability: Capability,
    reach: Reach,
    /// The packet suites that the sender permits, as in payload 1 of the handshake (SPEC §3.3).
    suites: u8,
}

/// Reason why a text is not a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// It does not start with `wraith:`.
    #[error("it does not begin with \"wraith:\"")]
    NotATicket,
    /// A character outside the base32 alphabet, or an invalid length.
    #[error("it holds a character that tickets never hold, or a part is missing")]
    NotBase32,
    /// Too short, too long, or a length that contradicts the address count.
    #[error("it is truncated, or has extra characters")]
    WrongLength,
    /// The check does not match: a character was changed, lost or added.
    #[error("a character was changed")]
    Mistyped,
    /// Made by a newer version.
    #[error("it was made by a newer version of wraith (format {0}): update wraith on this machine")]
    UnknownVersion(u8),
    /// Made by an older version, whose handshake is no longer supported.
    #[error(
        "it was made by an older version of wraith (format {0}), which is no longer supported: update wraith on the sender's machine, and get a new ticket"
    )]
    OlderVersion(u8),
    /// Port 0, an address family other than IPv4 and IPv6, or an address in the place of others.
    #[error("it holds an address that cannot be reached")]
    BadAddress,
    /// More than [`MAX_ADDRESSES`] addresses.
    #[error("it holds more than {MAX_ADDRESSES} addresses")]
    TooManyAddresses,
    /// An invalid relay, or an invalid number of relays: none, or more than [`MAX_RELAYS`].
    #[error("it names a relay that cannot be reached")]
    BadRelay,
    /// The default suites in a field that is for others.
    #[error("its list of ciphers is malformed")]
    BadSuites,
}

impl Ticket {
    /// Makes a ticket for the offer that `capability` names at `node_id`. Ways without room are left
    /// out: the first address takes precedence over relays, these over ways of other carriers, and
    /// these over all other addresses.
    pub fn new(node_id: NodeId, capability: Capability, reach: impl Into<Reach>) -> Self {
        let (kind, suites) = (TicketKind::Offer, Policy::Default.packet_suites());
        Self { kind, node_id, capability, reach: reach.into(), suites }.fitted()
    }

    /// Makes it the ticket of a service. It leads to no offer.
    pub fn of_service(mut self) -> Self {
        self.kind = TicketKind::Service;
        self.fitted()
    }

    /// Returns its kind: a ticket of an offer or of a service.
    pub const fn kind(&self) -> TicketKind {
        self.kind
    }

    /// Sets the packet suites that the sender permits. A receiver without one of them can say so
    /// instead of dialling in vain.
    pub fn with_suites(mut self, suites: u8) -> Self {
        self.suites = suites;
        self.fitted()
    }

    /// Returns the packet suites that the sender permits, as bits ([`wraith_crypto::Suite::bit`]).
    pub const fn suites(&self) -> u8 {
        self.suites
    }

    fn version(&self) -> u8 {
        let is_service = self.kind == TicketKind::Service;
        match (self.reach.custom().next(), self.reach.relays().next()) {
            (Some(_), _) if is_service => VERSION_OF_SERVICE_WITH_WAYS,
            (Some(_), _) => VERSION_WITH_WAYS,
            _ if is_service => VERSION_OF_SERVICE,
            _ if self.suites != Policy::Default.packet_suites() => VERSION_WITH_SUITES,
            (None, Some(_)) => VERSION_WITH_RELAYS,
            (None, None) => VERSION,
        }
    }

    /// Returns the same ticket with these ways.
    #[must_use]
    pub fn at(&self, reach: Reach) -> Self {
        Self { reach, ..self.clone() }.fitted()
    }

    /// Returns the same ticket with the address at which its sender was met
    /// [first](Reach::nearest_first).
    #[must_use]
    pub fn met_at(&self, address: Option<SocketAddr>) -> Self {
        let mut reach = self.reach.clone();
        address.into_iter().for_each(|address| reach.nearest_first(address));
        self.at(reach)
    }

    /// Drops ways until the ticket has its longest length at most.
    fn fitted(mut self) -> Self {
        let version = self.version();
        let counts = usize::from(version != VERSION) + usize::from(version >= VERSION_WITH_SUITES);
        let room = MAX_LEN - HEAD_LEN - counts - CHECK_LEN;
        let address_len = |address: SocketAddr| if address.is_ipv4() { 7 } else { 19 };
        self.reach = self.reach.fitted(room, MAX_ADDRESSES, address_len);
        self
    }

    /// Returns the NodeId that the handshake must authenticate.
    pub const fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// Returns the capability of the offer.
    pub const fn capability(&self) -> &Capability {
        &self.capability
    }

    /// Returns the ways to the sender. Within a kind, the most useful one comes first.
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Returns the addresses to dial, best first.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.reach.addresses()
    }

    /// Returns the binary form of SPEC §2, without `wraith:`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAX_LEN);
        let version = self.version();
        out.push(version);
        out.extend_from_slice(&self.node_id.0);
        out.extend_from_slice(self.capability.as_bytes());
        let addresses = self.addresses();
        out.push(addresses.len() as u8);
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    out.push(FAMILY_IPV4);
                    out.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    out.push(FAMILY_IPV6);
                    out.extend_from_slice(&ip.octets());
                }
            }
            out.extend_from_slice(&address.port().to_be_bytes());
        }
        if version != VERSION {
            out.push(self.reach.relays().count() as u8);
            self.reach.relays().for_each(|relay| relay.encode(&mut out));
        }
        if version >= VERSION_WITH_SUITES {
            out.push(self.suites);
        }
        self.reach.custom().for_each(|way| way.encode(&mut out));
        let check = check(&out);
        out.extend_from_slice(&check);
        out
    }

    /// Parses the binary form.
    ///
    /// # Errors
    /// All of [`TicketError`] except the two about text.
    pub fn decode(bytes: &[u8]) -> Result<Self, TicketError> {
        if bytes.len() < HEAD_LEN + CHECK_LEN || bytes.len() > MAX_LEN {
            return Err(TicketError::WrongLength);
        }
        let (body, found) = bytes.split_at(bytes.len() - CHECK_LEN);
        if check(body) != found {
            return Err(TicketError::Mistyped);
        }
        let mut reader = Reader(body);
        let version = reader.byte()?;
        if version < VERSION {
            return Err(TicketError::OlderVersion(version));
        }
        if version > VERSION_OF_SERVICE_WITH_WAYS {
            return Err(TicketError::UnknownVersion(version));
        }
        let node_id = NodeId(reader.array()?);
        let capability = Capability::from_bytes(reader.array()?);
        let count = usize::from(reader.byte()?);
        if count > MAX_ADDRESSES {
            return Err(TicketError::TooManyAddresses);
        }
        let addresses = (0..count).map(|_| reader.address()).collect::<Result<Vec<_>, _>>()?;
        let mut relays = Vec::new();
        if version != VERSION {
            let count = usize::from(reader.byte()?);
            let least = usize::from(version == VERSION_WITH_RELAYS);
            if count < least || count > MAX_RELAYS {
                return Err(TicketError::BadRelay);
            }
            for _ in 0..count {
                relays.push(reader.relay()?);
            }
        }
        let default = Policy::Default.packet_suites();
        let suites = if version >= VERSION_WITH_SUITES { reader.byte()? } else { default };
        // One encoding for each ticket.
        if version == VERSION_WITH_SUITES && suites == default {
            return Err(TicketError::BadSuites);
        }
        // None in a ticket for them is as wrong as one in another ticket.
        if (version >= VERSION_WITH_WAYS) == reader.0.is_empty() {
            return Err(TicketError::WrongLength);
        }
        let mut custom = Vec::new();
        while !reader.0.is_empty() {
            custom.push(reader.custom()?);
        }
        let kind = match version {
            VERSION_OF_SERVICE | VERSION_OF_SERVICE_WITH_WAYS => TicketKind::Service,
            _ => TicketKind::Offer,
        };
        let reach = Reach::from(addresses).with(relays).with(custom);
        Ok(Self { kind, node_id, capability, reach, suites })
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(&BASE32_NOPAD.encode(&self.encode()).to_ascii_lowercase())
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    /// Ignores case and white space, which mail and chat programs change.
    fn from_str(text: &str) -> Result<Self, TicketError> {
        if text.len() > MAX_TEXT_LEN {
            return Err(TicketError::WrongLength);
        }
        let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let prefix = text.get(..PREFIX.len()).ok_or(TicketError::NotATicket)?;
        if !prefix.eq_ignore_ascii_case(PREFIX) {
            return Err(TicketError::NotATicket);
        }
        let base32 = text[PREFIX.len()..].to_ascii_uppercase();
        let bytes = BASE32_NOPAD.decode(base32.as_bytes()).map_err(|_| TicketError::NotBase32)?;
        Self::decode(&bytes)
    }
}

fn check(body: &[u8]) -> [u8; CHECK_LEN] {
    let [a, b, c, d, ..] = kdf::derive(CHECK_CONTEXT, body);
    [a, b, c, d]
}

/// The rest of a ticket; every read is bounds-checked.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], TicketError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(TicketError::WrongLength)?;
        self.0 = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> Result<u8, TicketError> {
        self.array().map(|[byte]| byte)
    }

    fn address(&mut self) -> Result<SocketAddr, TicketError> {
        let ip = match self.byte()? {
            FAMILY_IPV4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>()?)),
            FAMILY_IPV6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>()?)),
            _ => return Err(TicketError::BadAddress),
        };
        match u16::from_be_bytes(self.array()?) {
            0 => Err(TicketError::BadAddress),
            port => Ok(SocketAddr::new(ip, port)),
        }
    }

    fn relay(&mut self) -> Result<RelayAddr, TicketError> {
        let (relay, rest) = RelayAddr::decode(self.0).map_err(|error| match error {
            RelayAddrError::WrongLength => TicketError::WrongLength,
            _ => TicketError::BadRelay,
        })?;
        self.0 = rest;
        Ok(relay)
    }

    fn custom(&mut self) -> Result<CustomWay, TicketError> {
        let (way, rest) = CustomWay::decode(self.0).ok_or(TicketError::WrongLength)?;
        self.0 = rest;
        way.map_err(|_| TicketError::BadAddress)
    }
}

#[cfg(test)]
mod tests;
