//! Converts commands to frames, and the relay's frames to replies.

use std::io;
use std::time::Instant;

use tracing::debug;
use wraith_discovery::unix_seconds;

use super::{Command, RelayTask};
use crate::client::keep_alive::KeepAlive;
use crate::client::status::RelayTransport;
use crate::frame::{ClientFrame, Mailbox, Refusal, ServerFrame, mailbox_of};
use crate::outbox::Outbox;

/// Most pairs of one relay: more than an honest relay makes for one client.
const PAIRS_MAX: usize = 1024;

impl RelayTask {
    pub(super) fn on_command(&mut self, outbox: &Outbox, command: Command) {
        match command {
            Command::Register(secret, reply) => {
                self.add_registration(secret, reply);
                outbox.push_control(|out| ClientFrame::Register(secret).encode(out));
            }
            Command::Unregister(mailbox) => {
                self.remove_registration(&mailbox);
                outbox.push_control(|out| ClientFrame::Unregister(mailbox).encode(out));
            }
            Command::Dial(mailbox, reply) => {
                let request = self.next_request;
                self.next_request = request.wrapping_add(1);
                self.dialling.insert(request, reply);
                outbox.push_control(|out| ClientFrame::Dial { request, mailbox }.encode(out));
            }
            Command::HangUp(id) => {
                outbox.push_control(|out| ClientFrame::HangUp(id).encode(out));
            }
            // Handled by the task, which ends.
            Command::Leave(reply) => drop(reply),
        }
    }

    pub(super) fn on_frame(&mut self, keep_alive: &mut KeepAlive, frame: &[u8]) -> io::Result<()> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        let Some(frame) = ServerFrame::decode(frame).map_err(invalid)? else { return Ok(()) };
        match frame {
            ServerFrame::Datagram(id, datagram) => {
                self.shared.push_received(self.number, id, datagram)
            }
            ServerFrame::Registered(mailbox) => self.complete_registration(mailbox, None),
            ServerFrame::NotRegistered(mailbox, why) => {
                self.complete_registration(mailbox, Some(why))
            }
            ServerFrame::Dialled(request, id) => {
                self.shared.with_relay(self.number, |relay| relay.add_pair(id));
                if let Some(reply) = self.dialling.remove(&request)
                    && reply.send(Ok(id)).is_ok()
                {
                    return Ok(());
                }
                // The caller is gone.
                self.shared.with_relay(self.number, |relay| {
                    relay.pairs.remove(&id);
                    relay.outbox.push_control(|out| ClientFrame::HangUp(id).encode(out));
                });
            }
            ServerFrame::NotDialled(request, why) => {
                if let Some(reply) = self.dialling.remove(&request) {
                    let _ = reply.send(Err(why.into()));
                }
            }
            ServerFrame::Incoming(id, _) => {
                self.shared.with_relay(self.number, |relay| {
                    // The relay enforces a limit as well; a malicious one gets no more memory than
                    // an honest one.
                    if relay.pairs.len() < PAIRS_MAX {
                        relay.add_pair(id);
                    }
                });
            }
            ServerFrame::Closed(id) => {
                self.shared.with_relay(self.number, |relay| relay.pairs.remove(&id));
            }
            ServerFrame::Pong(_) => {
                if let Some(rtt) = keep_alive.pong(Instant::now()) {
                    self.status.send_modify(|status| {
                        if status.transport == RelayTransport::Tls {
                            status.rtt = Some(rtt);
                        }
                    });
                }
            }
            ServerFrame::Draining(seconds) => {
                debug!(seconds, "a relay is about to stop");
                self.status.send_modify(|status| status.draining = true);
            }
            ServerFrame::Clock(seconds) => {
                let difference = i128::from(seconds) - i128::from(unix_seconds());
                let difference = i64::try_from(difference).unwrap_or(i64::MAX);
                self.status.send_modify(|status| status.clock_difference = Some(difference));
            }
            ServerFrame::Welcome(_) | ServerFrame::Refused(_) => {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    fn complete_registration(&mut self, mailbox: Mailbox, refused: Option<Refusal>) {
        let waiting = self.registering.remove(&mailbox);
        if refused.is_some() && waiting.is_some() {
            // The callers get the refusal. A mailbox that was registered earlier is registered
            // again on the next connection.
            self.mailboxes.retain(|secret| mailbox_of(secret) != mailbox);
        }
        for reply in waiting.into_iter().flatten() {
            let _ = reply.send(match refused {
                None => Ok(mailbox),
                Some(why) => Err(why.into()),
            });
        }
    }
}
