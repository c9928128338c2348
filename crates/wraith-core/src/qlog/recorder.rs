//! Logging hooks of a connection: they turn its state into events.
//!
//! Invariant: estimates and states are recorded only when they change.

use std::time::Duration;

use super::event::{AckedRanges, Event, FrameKinds, Metrics};
use super::{LogStart, Sink, SinkFactory};
use crate::frame::{Frame, Frames, SentFrames};
use crate::recovery::{Recovery, Settled};
use crate::{CloseReason, Time};

/// Logging state of a connection.
#[derive(Debug)]
pub(crate) struct Recorder {
    sink: Box<dyn Sink>,
    metrics: Metrics,
    state: &'static str,
}

impl Recorder {
    /// Creates the recorder of a connection, if the factory returns a sink.
    pub(crate) fn new(factory: &dyn SinkFactory, start: &LogStart) -> Option<Box<Self>> {
        let sink = factory.sink(start)?;
        Some(Box::new(Self { sink, metrics: Metrics::default(), state: "" }))
    }

    pub(crate) fn record(&mut self, now: Time, event: &Event) {
        self.sink.record(now, event);
    }

    pub(crate) fn sent(&mut self, now: Time, pn: u64, bytes: usize, frames: &SentFrames) {
        let (frames, stream) = FrameKinds::of_sent(frames);
        self.record(now, &Event::PacketSent { pn, bytes: bytes as u32, frames, stream });
    }

    pub(crate) fn sent_close(&mut self, now: Time, pn: u64, bytes: usize) {
        let (bytes, frames) = (bytes as u32, FrameKinds::CLOSE);
        self.record(now, &Event::PacketSent { pn, bytes, frames, stream: None });
    }

    /// Records an opened packet. Its payload is parsed once more, only for the log.
    pub(crate) fn received(&mut self, now: Time, pn: u64, bytes: usize, payload: &[u8]) {
        let mut frames = FrameKinds::default();
        let (mut acked, mut ack_delay) = (AckedRanges::default(), Duration::ZERO);
        for frame in Frames::new(payload).map_while(Result::ok) {
            frames.insert(match frame {
                Frame::Ack(ack) => {
                    acked = AckedRanges::new(ack.ranges());
                    ack_delay = Duration::from_micros(ack.delay_us);
                    FrameKinds::ACK
                }
                Frame::Padding => continue,
                Frame::Ping => FrameKinds::PING,
                Frame::ResetStream { .. } => FrameKinds::RESET_STREAM,
                Frame::StopSending { .. } => FrameKinds::STOP_SENDING,
                Frame::Stream { .. } => FrameKinds::STREAM,
                Frame::MaxData(_) => FrameKinds::MAX_DATA,
                Frame::MaxStreamData { .. } => FrameKinds::MAX_STREAM_DATA,
                Frame::MaxStreams(_) => FrameKinds::MAX_STREAMS,
                Frame::DataBlocked(_)
                | Frame::StreamDataBlocked { .. }
                | Frame::StreamsBlocked(_) => FrameKinds::BLOCKED,
                Frame::Datagram(_) => FrameKinds::DATAGRAM,
                Frame::PathChallenge(_) => FrameKinds::PATH_CHALLENGE,
                Frame::PathResponse(_) => FrameKinds::PATH_RESPONSE,
                Frame::Candidates(_) => FrameKinds::CANDIDATES,
                Frame::ObservedAddress(_) => FrameKinds::OBSERVED_ADDRESS,
                Frame::AckFrequency { .. } | Frame::ImmediateAck => FrameKinds::ACK_FREQUENCY,
                Frame::Ratchet { .. } => FrameKinds::RATCHET,
                Frame::Close { .. } => FrameKinds::CLOSE,
            });
        }
        let bytes = bytes as u32;
        self.record(now, &Event::PacketReceived { pn, bytes, frames, acked, ack_delay });
    }

    /// Records packets that an ACK or a timer settled.
    pub(crate) fn settled<F>(&mut self, now: Time, settled: &Settled<F>, recovery: &Recovery<F>) {
        for packet in &settled.lost {
            self.record(now, &Event::PacketLost { pn: packet.pn, bytes: packet.size });
        }
        self.update(now, recovery);
    }

    /// Records the estimates and the controller's state if they changed.
    pub(crate) fn update<F>(&mut self, now: Time, recovery: &Recovery<F>) {
        let (rtt, controller) = (recovery.rtt(), recovery.controller());
        let metrics = Metrics {
            congestion_window: recovery.window(),
            bytes_in_flight: recovery.bytes_in_flight(),
            pacing_rate: recovery.pacing_rate(),
            slow_start_threshold: controller.metrics().slow_start_threshold,
            latest_rtt: rtt.latest(),
            smoothed_rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            rtt_variance: rtt.var(),
        };
        let state = controller.state();
        if metrics != self.metrics {
            self.metrics = metrics;
            self.record(now, &Event::MetricsUpdated(metrics));
        }
        if state != self.state {
            let old = std::mem::replace(&mut self.state, state);
            self.record(now, &Event::CongestionStateUpdated { old, new: state });
        }
    }

    pub(crate) fn closed(&mut self, now: Time, reason: &CloseReason) {
        self.record(now, &Event::closed(reason));
    }
}
