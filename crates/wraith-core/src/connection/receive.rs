//! Receiving: opens packets and handles their frames.
//!
//! Invariant: nothing changes before the packet's tag is verified. A frame that breaks the protocol
//! closes the connection, and the rest of its packet is ignored.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tracing::debug;
use wraith_noise::PacketOpenError;

use super::migration::is_probing;
use super::{Connection, ConnectionState};
use crate::event::{Ecn, Event};
use crate::frame::{Frame, Frames, SentFrame, SentFrames};
use crate::mtud::BlackHole;
use crate::recovery::Settled;
use crate::{CloseReason, PathAddr, Time, Violation, code};

/// Length of CID and packet number in front of the sealed frames (SPEC §4).
const HEADER: usize = 12;
/// Pending events after which received datagrams are dropped.
const EVENTS_MAX: usize = 256;

impl Connection {
    /// Handles a datagram that may be a packet of this connection.
    ///
    /// # Errors
    /// Not a packet of this connection, or not authentic. The state is then unchanged.
    pub(crate) fn handle_packet(
        &mut self,
        now: Time,
        from: PathAddr,
        ecn: Option<Ecn>,
        datagram: &mut [u8],
    ) -> Result<(), PacketOpenError> {
        let sealed = self.sealed.as_mut().ok_or(PacketOpenError::OtherConnection)?;
        let opened = sealed.opener.open(datagram).inspect_err(|why| {
            self.stats.datagrams_dropped += u64::from(*why == PacketOpenError::Unauthentic);
        })?;
        if opened.new_phase {
            sealed.forget_at = Some(now + self.recovery.pto() * 3);
            self.ratchet.on_peer_advanced();
        }
        self.stats.packets_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        if self.confirming.take().is_some() {
            self.begin_early_move(now);
        }
        let payload = &datagram[HEADER..HEADER + opened.payload_len];
        match &mut self.state {
            ConnectionState::Established => {}
            ConnectionState::Closing { due, next, until, .. } => {
                if Frames::new(payload).any(|frame| matches!(frame, Ok(Frame::Close { .. }))) {
                    // The peer has our CLOSE, so no retransmission is needed.
                    *until = now;
                } else {
                    *due |= *next <= now;
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.received(now, opened.pn, datagram.len(), payload);
        }
        let newest = self.acks.largest().is_none_or(|largest| opened.pn > largest);
        match self.handle_payload(now, payload) {
            // A packet with refused stream data is not acknowledged; the peer retransmits all of
            // it.
            Ok(_) if self.streams.take_refused() => {
                self.paths.forget_challenge();
                self.restart_idle_timer(now);
            }
            Ok(ack_eliciting) => {
                self.acks.on_received(now, opened.pn, ack_eliciting);
                self.acks.on_codepoint(ecn);
                self.restart_idle_timer(now);
                if matches!(self.state, ConnectionState::Established) {
                    let owed = self.paths.queue_response(from, datagram.len());
                    if !self.paths.is_settled_on(from) {
                        let probes = is_probing(&datagram[HEADER..HEADER + opened.payload_len]);
                        // A probing packet may arrive late, overtaken on a shorter path. It never
                        // causes a move.
                        if newest || probes {
                            self.on_path_activity(now, from, probes, [datagram.len(), owed]);
                        }
                    }
                }
            }
            Err(violation) => self.close_for_violation(now, violation),
        }
        Ok(())
    }

    /// Handles every frame. Returns true if the packet is ack-eliciting.
    fn handle_payload(&mut self, now: Time, payload: &[u8]) -> Result<bool, Violation> {
        if payload.is_empty() {
            return Err(Violation::protocol("an empty packet"));
        }
        let mut ack_eliciting = false;
        for frame in Frames::new(payload) {
            let frame = frame?;
            ack_eliciting |= frame.is_ack_eliciting();
            self.handle_frame(now, frame)?;
            if !matches!(self.state, ConnectionState::Established) {
                break;
            }
        }
        Ok(ack_eliciting)
    }

    fn handle_frame(&mut self, now: Time, frame: Frame<'_>) -> Result<(), Violation> {
        match frame {
            Frame::Padding | Frame::Ping => {}
            Frame::Ack(ack) => {
                let delay = Duration::from_micros(ack.delay_us);
                let mut settled = std::mem::take(&mut self.settled);
                let result =
                    self.recovery.on_ack(now, ack.largest, ack.ranges(), delay, &mut settled);
                self.settle(now, &mut settled);
                self.settled = settled;
                result?;
                self.recovery.on_ecn(now, ack.ecn);
                self.update_ack_frequency();
            }
            Frame::Stream { id, offset, fin, data } => {
                self.streams.on_stream(id, offset, fin, data)?;
            }
            Frame::ResetStream { id, code, final_size } => {
                self.streams.on_reset_stream(id, code, final_size)?;
            }
            Frame::StopSending { id, code } => self.streams.on_stop_sending(id, code)?,
            Frame::MaxData(max) => self.streams.on_max_data(max)?,
            Frame::MaxStreamData { id, maximum } => {
                self.streams.on_max_stream_data(id, maximum)?;
            }
            Frame::MaxStreams(max) => self.streams.on_max_streams(max)?,
            Frame::DataBlocked(max) => self.streams.on_data_blocked(max),
            Frame::StreamDataBlocked { id, maximum } => {
                self.streams.on_stream_data_blocked(id, maximum)?;
            }
            Frame::StreamsBlocked(max) => self.streams.on_streams_blocked(max)?,
            Frame::Datagram(data) => {
                // Unreliable: datagrams that the application does not fetch in time are dropped.
                if self.events.len() < EVENTS_MAX {
                    self.events.push_back(Event::Datagram(Bytes::copy_from_slice(data)));
                }
            }
            Frame::PathChallenge(data) => self.paths.on_challenge(data),
            Frame::PathResponse(data) => self.on_path_response(now, data),
            Frame::Candidates(candidates) => self.on_candidates(&candidates),
            Frame::ObservedAddress(address) => self.on_observed_address(address),
            Frame::AckFrequency { sequence, packets, max_delay_us } => {
                let delay = Duration::from_micros(max_delay_us);
                self.acks.on_ack_frequency(sequence, packets, delay);
            }
            Frame::ImmediateAck => self.acks.on_immediate_ack(),
            Frame::Ratchet { number, part, bytes } => self.on_ratchet(now, number, part, bytes)?,
            Frame::Close { code, reason } => self.on_close(now, code, reason),
        }
        Ok(())
    }

    fn on_close(&mut self, now: Time, code: u64, reason: &str) {
        let reason = reason.to_owned();
        self.state =
            ConnectionState::Draining { answer_due: true, until: now + self.recovery.pto() * 3 };
        self.announce_end(now, CloseReason::Peer { code, reason });
    }

    /// Records this side's address as the peer sees it. The protocol does not depend on it; the
    /// application uses it to find the addresses of this host.
    pub(super) fn on_observed_address(&mut self, address: SocketAddr) {
        let nowhere = address.ip().is_unspecified() || address.port() == 0;
        if nowhere || self.observed == Some(address) {
            return;
        }
        self.observed = Some(address);
        debug!(parent: &self.span, %address, "observed address");
        // Bounded, because a peer may report another address in every packet.
        if self.events.len() < EVENTS_MAX {
            self.events.push_back(Event::ObservedAddress(address));
        }
    }

    /// Handles the packets that recovery settled as acknowledged or lost, and clears `settled`.
    pub(super) fn settle(&mut self, now: Time, settled: &mut Settled<SentFrames>) {
        if let Some(qlog) = &mut self.qlog {
            qlog.settled(now, settled, &self.recovery);
        }
        for packet in settled.acked.drain(..) {
            if packet.mtu_probe {
                if let Some(mtu) = self.paths.mtud().on_probe_acked(packet.size as u16) {
                    debug!(parent: &self.span, mtu, "path MTU raised");
                    self.recovery.set_mtu(mtu);
                }
            } else {
                self.paths.mtud().on_packet_acked(packet.pn, packet.size);
            }
            for frame in &packet.frames {
                match frame {
                    SentFrame::Ack { largest } => self.acks.on_ack_acked(*largest),
                    SentFrame::Ratchet { number, part } => self.ratchet.on_acked(*number, *part),
                    other => self.streams.on_acked(other),
                }
            }
        }
        self.paths.mtud().on_spurious_losses(self.recovery.spurious_losses());
        for packet in settled.lost.drain(..) {
            if packet.mtu_probe {
                self.paths.mtud().on_probe_lost();
            } else if let Some(hole) = self.paths.mtud().on_packet_lost(now, packet.pn, packet.size)
            {
                self.on_black_hole(now, hole);
            }
            for frame in &packet.frames {
                self.on_frame_lost(frame);
            }
        }
    }

    #[cold]
    fn on_black_hole(&mut self, now: Time, hole: BlackHole) {
        match hole {
            BlackHole::Lowered(mtu) => {
                debug!(parent: &self.span, mtu, "path MTU black hole: search restarted");
                self.recovery.set_mtu(mtu);
            }
            BlackHole::Unusable if matches!(self.state, ConnectionState::Established) => {
                self.close_with(now, code::PATH_MTU, "path MTU", CloseReason::PathMtu);
            }
            BlackHole::Unusable => {}
        }
    }

    pub(super) fn on_frame_lost(&mut self, frame: &SentFrame) {
        match frame {
            SentFrame::AckFrequency(sequence) => {
                self.frequency.pending |= *sequence == self.frequency.sequence;
            }
            SentFrame::Candidates(sequence) => self.on_candidates_lost(*sequence),
            SentFrame::ObservedAddress => self.observed_due = true,
            SentFrame::Ratchet { number, part } => self.ratchet.on_lost(*number, *part),
            other => self.streams.on_lost(other),
        }
    }
}
