//! Punches, observations and exchanges in the I/O thread: passes requests to the core and events
//! back to the handles.

use std::collections::HashMap;
use std::sync::Arc;

use wraith_core::{Endpoint, PunchEvent, PunchId, Time, punch};

use super::movers::Movers;
use crate::lock::{WakeBatch, lock};
use crate::punch_request::{PortGuessing, PunchCommand, PunchShared};

/// Maximum number of queued events of a handle. A peer causes two events for each address that
/// answers, and there are at most 48 addresses.
const EVENTS_MAX: usize = 128;

/// The running punches.
#[derive(Debug, Default)]
pub(super) struct Punching(HashMap<PunchId, Arc<PunchShared>>);

impl Punching {
    pub(super) fn start(
        &mut self,
        core: &mut Endpoint,
        movers: &Movers,
        now: Time,
        (request, shared): (PunchCommand, Arc<PunchShared>),
        wakes: &mut WakeBatch,
    ) {
        let punches = core.punches();
        let begun = match &request {
            PunchCommand::Punch { secret, role, peer, candidates } => {
                punches.punch(now, secret, *role, *peer, candidates)
            }
            PunchCommand::PortGuessing { secret, role, many } => {
                let many = match many {
                    PortGuessing::Sockets(addresses) => punch::PortGuessing::Sockets(
                        addresses.iter().filter_map(|addr| movers.path(addr)).collect(),
                    ),
                    PortGuessing::Ports(ip) => punch::PortGuessing::Ports(*ip),
                };
                punches.punch_by_port_guessing(now, secret, *role, &many)
            }
            PunchCommand::Observe { secret, of, by } => punches.observe(now, secret, *of, *by),
            PunchCommand::Exchange { with, request } => punches.exchange(now, *with, request),
        };
        match begun {
            Ok(id) => {
                self.0.insert(id, shared);
            }
            Err(error) => shared.update(wakes, |state| {
                state.refused = Some(error);
                state.ended = true;
            }),
        }
    }

    /// Executes the requests of the handles.
    pub(super) fn apply_requests(&mut self, core: &mut Endpoint, now: Time) {
        self.0.retain(|id, shared| {
            let mut state = lock(&shared.0);
            let added = std::mem::take(&mut state.added);
            if state.dropped {
                core.punches().stop(*id);
            } else if !added.is_empty() {
                core.punches().add_candidates(now, *id, &added);
            }
            !state.dropped
        });
    }

    /// Passes events on. Returns true if there were any.
    pub(super) fn handle_events(&mut self, core: &mut Endpoint, wakes: &mut WakeBatch) -> bool {
        let mut any = false;
        while let Some((id, event)) = core.punches().poll_event() {
            any = true;
            let ended = matches!(event, PunchEvent::Ended { .. });
            let Some(shared) = self.0.get(&id) else { continue };
            shared.update(wakes, |state| {
                if ended || state.events.len() < EVENTS_MAX {
                    state.events.push_back(event);
                }
                state.ended |= ended;
            });
        }
        any
    }

    /// Ends all punches with the endpoint.
    pub(super) fn end_all(&mut self, wakes: &mut WakeBatch) {
        for (_, shared) in self.0.drain() {
            shared.update(wakes, |state| state.ended = true);
        }
    }
}
