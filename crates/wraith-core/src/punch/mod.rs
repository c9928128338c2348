//! NAT traversal (SPEC §14): hole punching with a peer, address observation, and requests in the
//! clear to hosts without a shared secret. All packets use the socket of an
//! [`Endpoint`](crate::Endpoint), because a NAT's mapping belongs to a socket.
//!
//! | function | counterpart | result |
//! |---|---|---|
//! | [`Punches::punch`] | a peer with the same secret that begins at about the same time | addresses that work in both directions |
//! | [`Punches::punch_by_port_guessing`] | such a peer, with ports to be guessed | one such address, with luck |
//! | [`Punches::observe`] | a [`Reflector`] with the secret | the address at which the reflector sees this endpoint |
//! | [`Punches::exchange`] | any host | one reply |
//!
//! Like the endpoint, it performs no I/O and reads no clock. Invariants:
//!
//! - A packet is answered or believed only if it is authentic under one of the endpoint's secrets.
//!   The exception is the reply to a request in the clear, if it comes from the address asked.
//! - A datagram that belongs to no secret costs one hash for each secret. Beyond 2^18 hashes per
//!   second, datagrams that may belong to a punch are dropped unread.
//! - All unproven addresses together get few packets.

mod attempt;
mod observation;
mod packet;
mod port_guessing;
mod prediction;
mod reflector;
mod target;
#[cfg(test)]
mod tests;
mod unproven_budget;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use thiserror::Error;

pub use attempt::PeerStart;
pub use observation::AnswerMode;
pub use port_guessing::{PORT_GUESSES_MAX, PortGuessing};
pub use reflector::{Reflector, ReflectorAnswer};
pub use target::is_target;

use crate::streams::Role;
use crate::token_bucket::TokenBucket;
use crate::{PathAddr, Time};
use attempt::Attempt;
use observation::{Exchange, Observation};
use packet::Keys;
use port_guessing::AttemptLimiter;
use unproven_budget::UnprovenBudget;

/// Maximum number of punches and observations together. Each is a secret that a stray datagram is
/// tried with.
const SECRETS_MAX: usize = 16;
/// Maximum number of exchanges.
const EXCHANGES_MAX: usize = 8;
/// Maximum length of a request in the clear, and of the kept part of its reply. A DHT packet fits.
const EXCHANGE_BYTES_MAX: usize = 1500;
/// Hashes per second for datagrams that may belong to a punch: about 2 % of a core. The budget
/// covers 100,000 random datagrams per second with two secrets.
const HASHES_PER_SECOND: u64 = 1 << 18;
/// Burst of hashes.
const HASHES_BURST: Duration = Duration::from_millis(125);

/// Identifies a punch, an observation or an exchange of an endpoint. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PunchId(u64);

/// An event of a punch, an observation or an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PunchEvent {
    /// This endpoint's address as the counterpart sees it. Ends an observation.
    Observed(SocketAddr),
    /// The peer answered: packets pass in both directions between this endpoint's socket and
    /// `remote`.
    Punched {
        /// The peer's address.
        remote: SocketAddr,
        /// Time from a probe to its answer.
        rtt: Duration,
    },
    /// A stranger's reply to a request in the clear, unverified. Ends the exchange.
    Reply(Vec<u8>),
    /// The last event.
    Ended {
        /// The best proven address: in the local network, then IPv6, then the one with the lowest
        /// RTT.
        best: Option<SocketAddr>,
        /// Packet counters.
        counts: PunchCounts,
    },
}

/// Packet counters of a punch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PunchCounts {
    /// Packets sent.
    pub sent: u64,
    /// Authentic packets received, without repeats.
    pub received: u64,
    /// Probes withheld because the budget of unproven addresses was used up.
    pub withheld: u64,
}

/// The reason an attempt could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PunchError {
    /// Too many attempts of this kind are in progress.
    #[error("too many path discovery attempts in progress; wait until one ends")]
    TooMany,
    /// The address cannot belong to a single host.
    #[error("not a unicast address of a host")]
    NotATarget,
    /// The request is too long.
    #[error("the request is longer than 1500 bytes")]
    TooLong,
}

/// All attempts in progress at one endpoint. After any mutating call, the caller drains the outputs
/// of the endpoint and [`Self::poll_event`].
#[derive(Debug)]
pub struct Punches {
    attempts: Vec<(PunchId, Attempt)>,
    observations: Vec<(PunchId, Observation)>,
    exchanges: Vec<(PunchId, Exchange)>,
    unproved: UnprovenBudget,
    port_guessing: AttemptLimiter,
    hashes: TokenBucket,
    events: VecDeque<(PunchId, PunchEvent)>,
    next_id: u64,
    rng: ChaCha20Rng,
}

impl Punches {
    pub(crate) fn new(rng: ChaCha20Rng) -> Self {
        Self {
            attempts: Vec::new(),
            observations: Vec::new(),
            exchanges: Vec::new(),
            unproved: UnprovenBudget::default(),
            port_guessing: AttemptLimiter::default(),
            hashes: TokenBucket::new(HASHES_PER_SECOND, HASHES_BURST),
            events: VecDeque::new(),
            next_id: 0,
            rng,
        }
    }

    /// Returns true if no attempt is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.observations.is_empty() && self.exchanges.is_empty()
    }

    fn id(&mut self) -> PunchId {
        self.next_id += 1;
        PunchId(self.next_id)
    }

    fn has_room(&self) -> Result<(), PunchError> {
        let secrets = self.attempts.len() + self.observations.len();
        if secrets < SECRETS_MAX { Ok(()) } else { Err(PunchError::TooMany) }
    }

    /// Starts hole punching with a peer at any of `candidates` (16 at most). The peer uses the same
    /// `secret` and the other `role`, and begins as `peer` says. If it begins up to a minute later,
    /// this side sends as many packets, spread over that time. The secret belongs to this attempt
    /// and these two peers only. [`Self::poll_event`] returns the results, [`PunchEvent::Ended`]
    /// last.
    ///
    /// # Errors
    /// 16 punches and observations are in progress.
    pub fn punch(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        role: Role,
        peer: PeerStart,
        candidates: &[SocketAddr],
    ) -> Result<PunchId, PunchError> {
        self.has_room()?;
        let id = self.id();
        let attempt = Attempt::new(now, Keys::new(secret, role), peer, candidates);
        self.attempts.push((id, attempt));
        Ok(id)
    }

    /// Like [`Self::punch`], for two NATs that defeat plain punching. One side's NAT uses a
    /// different outside port for each destination; the other side's NAT admits only hosts that
    /// this other side has sent to. The first side probes from many sockets, the second probes many
    /// ports. Up to 256 small packets go to unproven addresses, so the caller must expect to
    /// transfer much more than that. Only the side with [`PortGuessing::Ports`] finds an address;
    /// that side has to migrate to it.
    ///
    /// # Errors
    /// Another such attempt began within 8 s, 16 punches and observations are in progress, or the
    /// address is invalid.
    pub fn punch_by_port_guessing(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        role: Role,
        port_guessing: &PortGuessing,
    ) -> Result<PunchId, PunchError> {
        self.has_room()?;
        if let PortGuessing::Ports(ip) = port_guessing
            && !is_target((*ip, 1).into())
        {
            return Err(PunchError::NotATarget);
        }
        if !self.port_guessing.start(now) {
            return Err(PunchError::TooMany);
        }
        let targets = port_guessing.targets(&mut self.rng);
        let id = self.id();
        self.attempts.push((id, Attempt::port_guessing(now, Keys::new(secret, role), targets)));
        Ok(id)
    }

    /// Adds candidate addresses of the peer to a punch in progress.
    pub fn add_candidates(&mut self, now: Time, id: PunchId, candidates: &[SocketAddr]) {
        if let Some((_, attempt)) = self.attempts.iter_mut().find(|(of, _)| *of == id) {
            attempt.add_candidates(now, candidates);
        }
    }

    /// Ends a punch, an observation or an exchange at once, without an event.
    pub fn stop(&mut self, id: PunchId) {
        self.attempts.retain(|(of, _)| *of != id);
        self.observations.retain(|(of, _)| *of != id);
        self.exchanges.retain(|(of, _)| *of != id);
        self.events.retain(|(of, _)| *of != id);
    }

    /// Asks a [`Reflector`] at `of`, which has the same `secret`, for our address.
    /// [`PunchEvent::Observed`] or [`PunchEvent::Ended`] follows. The answer comes as `by` requests,
    /// which shows the NAT's filtering. The observation also ends without an answer if the reflector
    /// does not support the request.
    ///
    /// # Errors
    /// 16 punches and observations are in progress, or the address is invalid.
    pub fn observe(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        of: SocketAddr,
        by: AnswerMode,
    ) -> Result<PunchId, PunchError> {
        self.has_room()?;
        if !is_target(of) || by == AnswerMode::Port(0) {
            return Err(PunchError::NotATarget);
        }
        let id = self.id();
        let observation = Observation::new(now, Keys::new(secret, Role::Initiator), of, by);
        self.observations.push((id, observation));
        Ok(id)
    }

    /// Sends `request` to `with` in the clear. For 3 s, it waits for one datagram from exactly that
    /// address that belongs to no connection. [`PunchEvent::Reply`] or [`PunchEvent::Ended`]
    /// follows. An attacker that can forge that address can forge the reply.
    ///
    /// # Errors
    /// 8 exchanges, or one with this address, are in progress; the address is invalid; or the
    /// request is longer than 1500 bytes.
    pub fn exchange(
        &mut self,
        now: Time,
        with: SocketAddr,
        request: &[u8],
    ) -> Result<PunchId, PunchError> {
        let known = self.exchanges.iter().any(|(_, exchange)| exchange.with == with);
        if known || self.exchanges.len() >= EXCHANGES_MAX {
            return Err(PunchError::TooMany);
        }
        if !is_target(with) {
            return Err(PunchError::NotATarget);
        }
        if request.len() > EXCHANGE_BYTES_MAX {
            return Err(PunchError::TooLong);
        }
        let id = self.id();
        self.exchanges.push((id, Exchange::new(now, with, request)));
        Ok(id)
    }

    /// Handles a datagram that no connection recognises. Returns false if it belongs to no attempt.
    pub(crate) fn handle(&mut self, now: Time, from: impl Into<PathAddr>, datagram: &[u8]) -> bool {
        let from = from.into();
        if packet::is_length(datagram.len()) && self.handle_sealed(now, from, datagram) {
            return true;
        }
        let is_from = |exchange: &Exchange| from == exchange.with.into();
        let Some(i) = self.exchanges.iter().position(|(_, exchange)| is_from(exchange)) else {
            return false;
        };
        let (id, _) = self.exchanges.swap_remove(i);
        let reply = datagram[..datagram.len().min(EXCHANGE_BYTES_MAX)].to_vec();
        self.events.push_back((id, PunchEvent::Reply(reply)));
        true
    }

    fn handle_sealed(&mut self, now: Time, from: PathAddr, datagram: &[u8]) -> bool {
        let secrets = self.attempts.len() + self.observations.len();
        if secrets == 0 || !self.hashes.take(now, secrets) {
            return false;
        }
        let found = self.observations.iter().enumerate().find_map(|(i, (_, observation))| {
            observation.handle(from, datagram).map(|seen_at| (i, seen_at))
        });
        if let Some((i, seen_at)) = found {
            let (id, observation) = self.observations.swap_remove(i);
            self.unproved.on_proved(observation.of);
            self.events.push_back((id, PunchEvent::Observed(seen_at)));
            return true;
        }
        let Self { attempts, unproved, rng, events, .. } = self;
        let mut news = Vec::new();
        let taken = attempts.iter_mut().find_map(|(id, attempt)| {
            attempt.handle(now, from, datagram, unproved, rng, &mut news).map(|()| *id)
        });
        if let Some(id) = taken {
            events.extend(news.into_iter().map(|event| (id, event)));
        }
        taken.is_some()
    }

    /// Returns the next packet to send. The caller repeats until `None`.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<(PathAddr, Vec<u8>)> {
        let Self { attempts, observations, exchanges, unproved, rng, .. } = self;
        let attempts =
            attempts.iter_mut().find_map(|(_, attempt)| attempt.poll_transmit(now, unproved, rng));
        attempts
            .or_else(|| {
                observations.iter_mut().find_map(|(_, observation)| {
                    let packet = observation.poll_transmit(now, unproved, rng)?;
                    Some((observation.of.into(), packet))
                })
            })
            .or_else(|| {
                exchanges.iter_mut().find_map(|(_, exchange)| {
                    let packet = exchange.poll_transmit(now, unproved)?;
                    Some((exchange.with.into(), packet))
                })
            })
    }

    /// Returns the next event of any punch, observation or exchange. The caller repeats until
    /// `None`.
    pub fn poll_event(&mut self) -> Option<(PunchId, PunchEvent)> {
        self.events.pop_front()
    }

    /// Handles all timers due by `now`.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        let Self { attempts, observations, exchanges, events, .. } = self;
        attempts.retain_mut(|(id, attempt)| {
            let mut news = Vec::new();
            let over = attempt.handle_timeout(now, &mut news);
            events.extend(news.into_iter().map(|event| (*id, event)));
            !over
        });
        let ended = PunchEvent::Ended { best: None, counts: PunchCounts::default() };
        observations.retain(|(id, observation)| {
            let over = observation.is_over(now);
            events.extend(over.then(|| (*id, ended.clone())));
            !over
        });
        exchanges.retain(|(id, exchange)| {
            let over = exchange.until <= now;
            events.extend(over.then(|| (*id, ended.clone())));
            !over
        });
    }

    pub(crate) fn timeout(&self) -> Option<Time> {
        let attempts = self.attempts.iter().map(|(_, attempt)| attempt.timeout());
        let observations = self.observations.iter().map(|(_, o)| o.timeout());
        let exchanges = self.exchanges.iter().map(|(_, exchange)| exchange.until);
        attempts.chain(observations).chain(exchanges).min()
    }
}
