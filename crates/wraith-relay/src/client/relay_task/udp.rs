//! Execution of the UDP decisions of [`UdpPath`](crate::client::udp_path::UdpPath) and of the proxy
//! association.

use std::time::Instant;

use tracing::debug;

use super::RelayTask;
use crate::binding::BindingKeys;
use crate::client::proxy_association::{AssociationChange, ProxyAssociation};
use crate::client::status::RelayTransport;
use crate::client::udp_path::UdpAction;
use crate::frame::{ClientFrame, Welcome};
use crate::header::Direction;
use crate::outbox::Outbox;

/// Keys of the session's UDP messages.
pub(super) struct UdpKeys {
    binding: BindingKeys,
}

impl UdpKeys {
    /// Derives the keys of a new or resumed session.
    pub fn new(welcome: &Welcome) -> Self {
        Self { binding: BindingKeys::new(&welcome.secret, welcome.binding) }
    }
}

impl RelayTask {
    /// Handles the mover's notification: bindings arrived, or UDP is silent.
    pub(super) fn on_notified(
        &mut self,
        keys: &UdpKeys,
        association: &ProxyAssociation,
        outbox: &Outbox,
    ) {
        let taken = self.shared.with_relay(self.number, |relay| {
            (std::mem::take(&mut relay.bindings), std::mem::take(&mut relay.stalled))
        });
        let Some((bindings, stalled)) = taken else { return };
        let now = Instant::now();
        for mut datagram in bindings {
            let Some(route) = self.route else { continue };
            let split = route.split(association.open(), &mut datagram);
            let Some((header, inner)) = split else { continue };
            let Some(message) = keys.binding.open(Direction::Down, inner) else { continue };
            let (action, rtt) = self.udp.on_message(now, message, &mut self.random);
            // The message answers the latest request.
            if let (Some(_), Some(route)) = (rtt, &mut self.route)
                && route.header().is_none()
            {
                route.confirm_header(header);
                self.shared.with_relay(self.number, |relay| relay.set_route(Some(*route)));
            }
            self.perform(keys, association, outbox, action);
            if self.udp.is_bound() {
                let observed = self.udp.observed();
                self.status.send_if_modified(|status| {
                    let before = (status.observed_udp, status.rtt);
                    status.observed_udp = observed;
                    status.rtt = rtt.or(status.rtt);
                    before != (status.observed_udp, status.rtt)
                });
            }
        }
        if stalled {
            let action = self.udp.on_silence(now);
            self.perform(keys, association, outbox, action);
        }
    }

    /// Handles the start or end of the proxy association.
    pub(super) fn on_association(
        &mut self,
        change: AssociationChange,
        association: &ProxyAssociation,
        now: Instant,
    ) -> UdpAction {
        self.route = association.route();
        self.shared.with_relay(self.number, |relay| relay.set_route(self.route));
        match change {
            AssociationChange::Opened => {
                self.udp.reconnected(Some(now));
                self.udp.on_timeout(now)
            }
            AssociationChange::Closed => self.udp.on_closed(),
        }
    }

    pub(super) fn perform(
        &mut self,
        keys: &UdpKeys,
        association: &ProxyAssociation,
        outbox: &Outbox,
        action: UdpAction,
    ) {
        match action {
            UdpAction::None => {}
            UdpAction::Send(message) => {
                if let Some(counter) = self.udp.counter_to_report() {
                    outbox.push_control(|out| ClientFrame::BindFrom(counter).encode(out));
                }
                let len = BindingKeys::draw_len(self.udp.is_bound(), &mut self.random);
                let datagram = keys.binding.seal_up(&message, len, &mut self.random);
                let asked_with = || association.open().map(|open| open.header());
                if let Some(route) = &self.route
                    && let Some(header) = route.header().or_else(asked_with)
                {
                    self.shared.push_binding(route.to(), [header, &datagram].concat());
                }
            }
            UdpAction::Use(use_udp) => {
                debug!(use_udp, "datagram transport changed");
                outbox.push_control(|out| ClientFrame::UseUdp(use_udp).encode(out));
                self.shared.with_relay(self.number, |relay| {
                    if let Some(session) = &mut relay.session {
                        session.use_udp = use_udp;
                    }
                });
                let observed = self.udp.observed();
                self.status.send_modify(|status| {
                    status.transport =
                        if use_udp { RelayTransport::Udp } else { RelayTransport::Tls };
                    status.observed_udp = observed;
                });
            }
        }
    }
}
