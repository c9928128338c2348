//! Sending: seals packets directly into the caller's buffer, in GSO batches.
//!
//! Order: the initiator's handshake messages (H1, H3), CLOSE, responses and challenges to any
//! address, an MTU probe, batches of full packets for the current path. Invariant: within one
//! batch, every packet except the last has the same size.

use std::time::Duration;

use rand_core::Rng;

use super::{Connection, ConnectionState};
use crate::event::{Ecn, Transmit};
use crate::frame::{FrameWriter, SentFrame, SentFrames, Written};
use crate::mtud::MTU_MIN;
use crate::path::Response;
use crate::recovery::{Budget, SentPacket};
use crate::{CloseReason, PathAddr, Time, code};

/// Overhead of a packet: CID and packet number in front, tag behind the sealed frames (SPEC §4).
pub(super) const OVERHEAD: usize = HEADER + TAG;
const HEADER: usize = 12;
const TAG: usize = 16;
/// Maximum length of type and length in front of a DATAGRAM's bytes.
pub(super) const DATAGRAM_HEADER: usize = 5;
/// Maximum number of datagrams in one batch: the kernel's limit for UDP GSO (UDP_MAX_SEGMENTS).
const SEGMENTS_MAX: usize = 64;
/// Maximum duration of a key phase (SPEC §4.5).
const PHASE_MAX: Duration = Duration::from_secs(120);
/// A connection closes once its key has sealed this many packets. The sealer panics beyond its own
/// limit (SPEC §4.5), so the rest of the batch and the CLOSE packets, some hundreds, need room
/// below it. Otherwise a peer that keeps this side sending and acknowledges nothing could reach
/// that panic.
const KEY_PACKETS_MAX: u64 = wraith_noise::KEY_PACKETS_MAX - (1 << 16);
/// An MTU probe is sent only if the path is estimated to carry this many packets of its size per
/// second. The pacer delays data by a probe's size, so on a slower path a search would hold data
/// back for minutes.
const PROBES_PER_SECOND_MIN: u64 = 10;
/// Maximum range, in packets, within which a packet number is skipped. The range doubles up to this
/// value.
const SKIP_RANGE_MAX: u64 = 1 << 14;
/// Maximum number of packets per ACK that this side requests from the peer.
const ACK_PACKETS_MAX: u64 = 64;

/// Permission to send data in a packet, and how.
#[derive(Clone, Copy)]
struct Data {
    allowed: bool,
    prompt: bool,
    /// The packet is marked ECT(0).
    ect0: bool,
}

impl Connection {
    /// Fills `buf` with the next datagrams. It must hold at least one datagram of the maximum MTU.
    pub(crate) fn poll_transmit(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        let transmit = match &self.state {
            ConnectionState::Handshake(_) => self.transmit_h1(now, buf),
            ConnectionState::Established => self
                .transmit_h3(now, buf)
                .or_else(|| self.transmit_response(now, buf))
                .or_else(|| self.transmit_challenge(now, buf))
                .or_else(|| self.transmit_mtu_probe(now, buf))
                .or_else(|| self.transmit_packets(now, buf)),
            ConnectionState::Closing { .. } => self.transmit_close(now, buf),
            ConnectionState::Draining { .. } => self.transmit_close_answer(now, buf),
            ConnectionState::Drained => None,
        };
        let Some(transmit) = transmit else {
            self.update_blocked_timer(now);
            return None;
        };
        debug_assert!(transmit.segment >= 1 && transmit.segment <= transmit.len);
        self.stats.bytes_sent += transmit.len as u64;
        Some(transmit)
    }

    fn single(to: PathAddr, len: usize) -> Transmit {
        Transmit { to, ecn: None, len, segment: len }
    }

    /// Sends the two datagrams of H1, one per call.
    fn transmit_h1(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        let to = self.paths.remote();
        let ConnectionState::Handshake(handshake) = &mut self.state else { return None };
        let repeats = handshake.next <= now;
        if repeats {
            handshake.next = now + handshake.interval;
            handshake.interval *= 2;
            handshake.cookies = 0;
            handshake.sent_count = handshake.sent_count.saturating_add(1);
        }
        if std::mem::take(&mut handshake.has_new_cookie) || repeats {
            handshake.sent = now;
            handshake.due = Some(0);
        }
        let part = handshake.due?;
        handshake.due = (part == 0).then_some(1);
        let datagram = &handshake.h1[part];
        buf[..datagram.len()].copy_from_slice(datagram);
        Some(Self::single(to, datagram.len()))
    }

    fn transmit_h3(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        let to = self.paths.remote();
        let confirming = self.confirming.as_mut()?;
        if confirming.next > now {
            return None;
        }
        confirming.next = now + confirming.interval;
        confirming.interval *= 2;
        buf[..confirming.h3.len()].copy_from_slice(&confirming.h3);
        Some(Self::single(to, confirming.h3.len()))
    }

    fn transmit_close(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        let pto = self.recovery.pto();
        let ConnectionState::Closing { code, reason, due, next, .. } = &mut self.state else {
            return None;
        };
        if !std::mem::take(due) {
            return None;
        }
        *next = now + pto;
        let mut out = FrameWriter::new(&mut buf[HEADER..self.paths.current().mtu() - TAG]);
        out.close(*code, reason);
        let payload = out.finish();
        let len = self.seal_close(now, payload, buf);
        Some(Self::single(self.paths.remote(), len))
    }

    /// Answers the peer's CLOSE with one CLOSE, so that the peer need not retransmit its own (RFC
    /// 9000 §10.2.2).
    fn transmit_close_answer(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        let ConnectionState::Draining { answer_due, .. } = &mut self.state else { return None };
        if !std::mem::take(answer_due) {
            return None;
        }
        let mut out = FrameWriter::new(&mut buf[HEADER..usize::from(MTU_MIN) - TAG]);
        out.close(code::NO_ERROR, "");
        let payload = out.finish();
        let len = self.seal_close(now, payload, buf);
        Some(Self::single(self.paths.remote(), len))
    }

    /// Seals a packet with CLOSE. Recovery does not track it.
    fn seal_close(&mut self, now: Time, payload: Written, buf: &mut [u8]) -> usize {
        let pn = self.next_pn;
        let len = self.seal_packet(payload, buf);
        if let Some(qlog) = &mut self.qlog {
            qlog.sent_close(now, pn, len);
        }
        len
    }

    fn transmit_response(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        let Response { to, data, len } = self.paths.poll_response()?;
        let mut out = FrameWriter::new(&mut buf[HEADER..len - TAG]);
        out.path_response(data);
        if to == self.paths.remote() {
            // A challenge on the current path gets a PING as well (RFC 9000 §9.3.3). A response
            // without other frames is a probing packet and would not move the peer.
            out.ping();
        }
        let payload = padded(out);
        Some(self.send_to(now, to, payload, SentFrame::PathResponse, buf))
    }

    fn transmit_challenge(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        let pto = self.recovery.pto();
        let (to, challenge, len) = self.paths.poll_challenge(now, pto)?;
        let mut out = FrameWriter::new(&mut buf[HEADER..len - TAG]);
        out.path_challenge(challenge);
        let payload = padded(out);
        Some(self.send_to(now, to, payload, SentFrame::PathChallenge(challenge), buf))
    }

    /// Sends a packet with one path validation frame. A packet to another address is not in flight
    /// on the current path. An attacker could cause its loss with a forged address, so that loss
    /// must not slow the sender.
    fn send_to(
        &mut self,
        now: Time,
        to: PathAddr,
        payload: Written,
        frame: SentFrame,
        buf: &mut [u8],
    ) -> Transmit {
        let ack_eliciting = to == self.paths.remote();
        let packet = SentPacket { ack_eliciting, ..plain(SentFrames::from_slice(&[frame])) };
        let len = self.send_packet(now, payload, buf, packet);
        Self::single(to, len)
    }

    /// Sends an MTU probe. Only with data in flight, so that its loss is detected and idle paths
    /// stay silent.
    fn transmit_mtu_probe(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        if self.confirming.is_some() || self.recovery.bytes_in_flight() == 0 {
            return None;
        }
        if self.packets_before_mtu_probe > 0 {
            return None;
        }
        let affordable = self.recovery.pacing_rate() / PROBES_PER_SECOND_MIN;
        let probe = self.paths.mtud().poll_probe_within(now, affordable, &mut self.rng)?;
        self.draw_next_mtu_probe();
        let size = usize::from(probe).min(buf.len());
        let mut out = FrameWriter::new(&mut buf[HEADER..size - TAG]);
        out.ping();
        out.immediate_ack();
        let payload = padded(out);
        let sent = SentFrames::from_slice(&[SentFrame::Ping]);
        let len =
            self.send_packet(now, payload, buf, SentPacket { mtu_probe: true, ..plain(sent) });
        Some(Self::single(self.paths.remote(), len))
    }

    /// Sends a batch of packets on the path, as congestion control and pacing allow, or a single
    /// ACK.
    fn transmit_packets(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        self.advance_phase(now);
        // From the second probe timeout on, use small packets: the path MTU may have shrunk.
        let small = self.probes > 0 && self.recovery.pto_count() >= 2;
        let full = if small { usize::from(MTU_MIN) } else { self.paths.current().mtu() };
        let is_drawn = self.has_drawn_sizes();
        let (mtu, count_max) =
            if is_drawn { (self.draw_full_size(full), 1) } else { (full, SEGMENTS_MAX) };
        let mut budget = self.data_budget(now, full);
        let ect0 = self.recovery.marks_ecn(now);
        let (mut len, mut segment, mut count) = (0, 0, 0);
        while count < count_max && len + mtu <= buf.len() {
            // Request an immediate ACK of the last packet of a flight that measures the round trip.
            let prompt = budget <= full as u64 && self.recovery.wants_prompt_acks();
            let data = Data { allowed: budget > 0, prompt, ect0 };
            let Some(size) = self.build_packet(now, &mut buf[len..len + mtu], data) else {
                break;
            };
            budget = budget.saturating_sub(size as u64);
            if count == 0 {
                segment = size;
            }
            len += size;
            count += 1;
            if size < mtu {
                break;
            }
        }
        if budget > 0 && !self.streams.has_pending() {
            self.recovery.set_app_limited(now);
        }
        if len > 0
            && let Some(qlog) = &mut self.qlog
        {
            qlog.update(now, &self.recovery);
        }
        let ecn = ect0.then_some(Ecn::Ect0);
        (len > 0).then_some(Transmit { to: self.paths.remote(), ecn, len, segment })
    }

    /// Returns the bytes of ack-eliciting packets that may be sent now.
    fn data_budget(&mut self, now: Time, mtu: usize) -> u64 {
        if self.probes > 0 {
            return u64::from(self.probes) * mtu as u64;
        }
        self.pace_at = None;
        if !self.has_data() {
            return 1;
        }
        match self.recovery.budget(now) {
            Budget::Bytes(bytes) => bytes,
            Budget::At(time) => {
                self.pace_at = Some(time);
                0
            }
            Budget::Blocked => 0,
        }
    }

    fn has_data(&self) -> bool {
        self.streams.has_pending() || !self.datagrams.is_empty()
    }

    /// Builds one packet in `space`, which has the size of the MTU, and returns its length. Returns
    /// `None` if nothing needs to be sent.
    fn build_packet(&mut self, now: Time, space: &mut [u8], data: Data) -> Option<usize> {
        let probe = self.probes > 0;
        let with_data = data.allowed && self.has_data();
        let credit = self.streams.has_control() && (data.allowed || self.is_held_back(now));
        let told = self.frequency.pending || self.candidates.due || self.ratchet.due;
        let control = self.ping || told || probe || credit;
        if !with_data && !control && !self.acks.is_due(now) {
            return None;
        }
        let end = space.len() - TAG;
        let mut sent = SentFrames::new();
        let mut out = FrameWriter::new(&mut space[HEADER..end]);
        let has_ack = self.acks.is_pending() && write_ack(&self.acks, now, &mut out, &mut sent);
        if self.frequency.pending {
            let delay_us = self.frequency.delay.as_micros() as u64;
            out.ack_frequency(self.frequency.sequence, self.frequency.packets, delay_us);
            sent.push(SentFrame::AckFrequency(self.frequency.sequence));
            self.frequency.pending = false;
        }
        if self.observed_due && (with_data || control) {
            self.write_observed_address(&mut out, &mut sent);
        }
        if self.candidates.due {
            self.write_candidates(&mut out, &mut sent);
        }
        if self.ratchet.due {
            self.write_ratchet(&mut out, &mut sent);
        }
        if probe || (with_data && data.prompt) {
            out.immediate_ack();
        }
        if with_data {
            self.write_datagrams(&mut out, &mut sent);
            self.streams.write_frames(&mut out, &mut sent);
        } else if credit {
            // The peer may be blocked on these frames, so they bypass the pacer.
            self.streams.write_control_frames(&mut out, &mut sent);
        }
        let ack_only = sent.iter().all(|f| matches!(f, SentFrame::Ack { .. })) && !probe;
        let refresh = has_ack && self.acks.on_sent(ack_only, self.recovery.has_eliciting());
        if self.ping || refresh || (probe && sent.is_empty()) {
            out.ping();
            sent.push(SentFrame::Ping);
            self.ping = false;
        }
        if out.is_empty() {
            return None;
        }
        let eliciting = !ack_only || refresh || sent.iter().any(|f| matches!(f, SentFrame::Ping));
        if self.has_drawn_sizes() {
            let bytes = self.pad(&mut out, eliciting);
            if !eliciting {
                self.recovery.on_padding_sent(bytes as u32);
            }
        }
        let payload = out.finish();
        self.probes = self.probes.saturating_sub(1);
        let packet = SentPacket { ack_eliciting: eliciting, ect0: data.ect0, ..plain(sent) };
        Some(self.send_packet(now, payload, space, packet))
    }

    /// Returns true if the pacer holds data back for longer than an ACK may be delayed. Control
    /// frames then go out without data. (A full window ends with an ACK or a probe.)
    fn is_held_back(&self, now: Time) -> bool {
        self.pace_at.is_some_and(|at| at > now + super::ACK_DELAY_MAX)
    }

    /// Writes the peer's address as this side sees it, if it is an Internet address. Cold: runs
    /// once, and after the peer moved.
    #[cold]
    fn write_observed_address(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) {
        let Some(address) = self.paths.remote().ip() else {
            self.observed_due = false;
            return;
        };
        if out.observed_address(address) {
            sent.push(SentFrame::ObservedAddress);
            self.observed_due = false;
        }
    }

    fn write_datagrams(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) {
        let largest = self.paths.current().mtu() - OVERHEAD - DATAGRAM_HEADER;
        while let Some(datagram) = self.datagrams.front() {
            // A datagram queued when the path had a larger MTU would block the queue forever, so it
            // is dropped.
            if datagram.len() <= largest {
                if !out.datagram(datagram) {
                    return;
                }
                sent.push(SentFrame::Datagram);
            }
            self.datagrams.pop_front();
        }
    }

    /// Seals a packet and passes it to recovery. `packet` is complete except for its size.
    fn send_packet(
        &mut self,
        now: Time,
        payload: Written,
        buf: &mut [u8],
        mut packet: SentPacket<SentFrames>,
    ) -> usize {
        let pn = self.next_pn;
        let len = self.seal_packet(payload, buf);
        packet.size = len as u32;
        if packet.ack_eliciting && !packet.mtu_probe {
            self.packets_before_mtu_probe = self.packets_before_mtu_probe.saturating_sub(1);
        }
        if packet.ack_eliciting && self.recovery.bytes_in_flight() == 0 {
            self.restart_idle_timer(now);
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.sent(now, pn, len, &packet.frames);
        }
        self.recovery.on_sent(now, pn, packet);
        len
    }

    /// Seals the payload at `buf[HEADER..]` under the next packet number. Returns the datagram's
    /// length.
    fn seal_packet(&mut self, payload: Written, buf: &mut [u8]) -> usize {
        let len = HEADER + payload.len + TAG;
        let sealed = self.sealed.as_mut().expect("packets are built only after the handshake");
        let tail = payload.tail.as_deref().unwrap_or_default();
        sealed.sealer.seal_from(self.next_pn, &mut buf[..len], tail);
        self.next_pn += 1;
        if self.next_pn == self.skip_pn {
            self.skip_number();
        }
        self.stats.packets_sent += 1;
        len
    }

    /// Skips a packet number. A peer that acknowledges it acknowledges a packet that was never
    /// sent.
    #[cold]
    fn skip_number(&mut self) {
        self.recovery.on_skipped(self.next_pn);
        self.next_pn += 1;
        self.skip_range = (self.skip_range * 2).min(SKIP_RANGE_MAX);
        self.skip_pn = self.next_pn + 1 + self.rng.next_u64() % self.skip_range;
    }

    /// Starts the next key phase when it is due and the peer has followed the current one (SPEC
    /// §4.5). Requests a ratchet when that is due.
    fn advance_phase(&mut self, now: Time) {
        self.begin_ratchet(now);
        let Some(sealed) = &mut self.sealed else { return };
        let packets = sealed.sealer.packets_in_phase();
        let old = packets > 0 && now - sealed.phase_since >= PHASE_MAX;
        let ratchets = self.ratchet.advance_due;
        if packets < self.config.phase_packets && !old && !ratchets {
            return;
        }
        let followed = self.recovery.largest_acked().is_some_and(|pn| pn >= sealed.phase_first_pn);
        if followed && !self.ratchet.holds_phase() {
            sealed.sealer.advance_phase();
            sealed.phase_since = now;
            sealed.phase_first_pn = self.next_pn;
            self.stats.key_phases += 1;
            self.stats.ratchets += u64::from(ratchets);
            self.ratchet.advance_due = false;
        } else if packets >= KEY_PACKETS_MAX {
            self.close_with(now, code::KEY_LIMIT, "key limit", CloseReason::KeyLimit);
        }
    }

    /// Requests ACKs as sparse as the window and RTT allow.
    pub(super) fn update_ack_frequency(&mut self) {
        let mtu = self.paths.current().mtu() as u64;
        let packets = (self.recovery.window() / mtu / self.recovery.acks_per_window())
            .clamp(2, ACK_PACKETS_MAX);
        let told = self.frequency.packets;
        // An unnecessary ACK is cheap. In a window that shrank, waiting for a sparse ACK costs a
        // part of the rate.
        if packets < told * 2 && told < packets + packets / 4 + 1 {
            return;
        }
        let rtt = self.recovery.rtt().smoothed();
        self.frequency.packets = packets;
        self.frequency.delay = (rtt / 4).clamp(Duration::from_millis(1), super::ACK_DELAY_MAX);
        self.frequency.sequence += 1;
        self.frequency.pending = true;
        self.recovery.set_ack_request(packets, self.frequency.delay);
    }
}

/// Pads a packet to the end of its room.
fn padded(mut out: FrameWriter<'_>) -> Written {
    let room = out.remaining();
    out.padding(room);
    out.finish()
}

/// Returns an ack-eliciting packet with `frames`, neither a probe nor marked. Its size is set
/// later.
fn plain(frames: SentFrames) -> SentPacket<SentFrames> {
    SentPacket { size: 0, ack_eliciting: true, mtu_probe: false, ect0: false, frames }
}

fn write_ack(
    acks: &crate::acks::Acks,
    now: Time,
    out: &mut FrameWriter<'_>,
    sent: &mut SentFrames,
) -> bool {
    let Some(largest) = acks.largest() else { return false };
    let Some((delay, ranges)) = acks.report(now) else { return false };
    if !out.ack(delay.as_micros() as u64, ranges, acks.ecn_counts()) {
        return false;
    }
    sent.push(SentFrame::Ack { largest });
    true
}
