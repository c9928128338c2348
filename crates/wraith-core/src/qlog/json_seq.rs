//! Text encoding of events: qlog 0.3 in JSON-SEQ, the format that qvis reads.
//!
//! Every record is one line with a record separator (0x1E) in front. The header has the fields of
//! 0.3, which viewers require. It also has those of the current drafts
//! (draft-ietf-quic-qlog-main-schema-13), which readers of 0.3 ignore. Names are those of 0.3, such
//! as `transport:packet_sent`; events that 0.3 lacks begin with `wraith:`. Times are milliseconds
//! since the start of the log, rates are bits per second.

use std::io::Write;
use std::time::Duration;

use super::event::{AckedRanges, CloseKind, Event, FrameKinds, Metrics, StreamFrame};
use crate::streams::Role;
use crate::{PathAddr, Time};

/// Separator in front of every record (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
/// Names of the frames of [`FrameKinds`] that have no fields in the log.
const FRAME_NAMES: [(FrameKinds, &str); 15] = [
    (FrameKinds::PING, "ping"),
    (FrameKinds::RESET_STREAM, "reset_stream"),
    (FrameKinds::STOP_SENDING, "stop_sending"),
    (FrameKinds::MAX_DATA, "max_data"),
    (FrameKinds::MAX_STREAM_DATA, "max_stream_data"),
    (FrameKinds::MAX_STREAMS, "max_streams"),
    (FrameKinds::BLOCKED, "data_blocked"),
    (FrameKinds::DATAGRAM, "datagram"),
    (FrameKinds::PATH_CHALLENGE, "path_challenge"),
    (FrameKinds::PATH_RESPONSE, "path_response"),
    (FrameKinds::OBSERVED_ADDRESS, "observed_address"),
    (FrameKinds::CANDIDATES, "candidates"),
    (FrameKinds::ACK_FREQUENCY, "ack_frequency"),
    (FrameKinds::RATCHET, "ratchet"),
    (FrameKinds::CLOSE, "connection_close"),
];

/// Appends the header of a log of side `role` that begins `unix_time` after 1970.
pub fn write_header(out: &mut Vec<u8>, role: Role, unix_time: Duration) {
    let side = match role {
        Role::Initiator => "client",
        Role::Responder => "server",
    };
    record(
        out,
        format_args!(
            "{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"wraith\",\
             \"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\",\
             \"trace\":{{\"vantage_point\":{{\"name\":\"wraith\",\"type\":\"{side}\"}},\
             \"event_schemas\":[\"urn:ietf:params:qlog:events:quic-12\"],\
             \"common_fields\":{{\"protocol_type\":[\"WRAITH\"],\"time_format\":\"relative\",\
             \"reference_time\":{}}}}}}}",
            millis(unix_time)
        ),
    );
}

/// Appends `event` from time `now`, in a log that began at `start`.
pub fn write_event(out: &mut Vec<u8>, start: Time, now: Time, event: &Event) {
    out.push(RECORD_SEPARATOR);
    put(
        out,
        format_args!(
            "{{\"time\":{},\"name\":\"{}\",\"data\":{{",
            millis(now.since(start)),
            name(event)
        ),
    );
    write_data(out, event);
    out.extend_from_slice(b"}}\n");
}

/// Appends a note that `count` events before this position are missing.
pub fn write_dropped(out: &mut Vec<u8>, start: Time, now: Time, count: u64) {
    let time = millis(now.since(start));
    record(
        out,
        format_args!(
            "{{\"time\":{time},\"name\":\"wraith:events_dropped\",\"data\":{{\"count\":{count}}}}}"
        ),
    );
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::ConnectionStarted { .. } => "connectivity:connection_started",
        Event::PacketSent { .. } => "transport:packet_sent",
        Event::PacketReceived { .. } => "transport:packet_received",
        Event::PacketLost { .. } => "recovery:packet_lost",
        Event::MetricsUpdated(_) => "recovery:metrics_updated",
        Event::CongestionStateUpdated { .. } => "recovery:congestion_state_updated",
        Event::PathChanged { .. } => "wraith:path_changed",
        Event::ConnectionClosed { .. } => "connectivity:connection_closed",
    }
}

fn write_data(out: &mut Vec<u8>, event: &Event) {
    match event {
        Event::ConnectionStarted { remote } | Event::PathChanged { remote } => {
            write_remote(out, remote);
        }
        Event::PacketSent { pn, bytes, frames, stream } => {
            write_packet(out, *pn, *bytes);
            write_frames(out, *frames, *stream, None);
        }
        Event::PacketReceived { pn, bytes, frames, acked, ack_delay } => {
            write_packet(out, *pn, *bytes);
            write_frames(out, *frames, None, Some((acked, *ack_delay)));
        }
        Event::PacketLost { pn, bytes } => {
            write_packet(out, *pn, *bytes);
            put(out, format_args!(",\"trigger\":\"time_threshold\""));
        }
        Event::MetricsUpdated(metrics) => write_metrics(out, metrics),
        Event::CongestionStateUpdated { old, new } => {
            put(out, format_args!("\"old\":\"{old}\",\"new\":\"{new}\""));
        }
        Event::ConnectionClosed { how, code } => {
            let (owner, trigger) = match how {
                CloseKind::Local => ("local", "clean"),
                CloseKind::Peer => ("remote", "clean"),
                CloseKind::IdleTimeout => ("local", "idle_timeout"),
                CloseKind::HandshakeTimeout => ("local", "handshake_timeout"),
                CloseKind::Violation => ("local", "protocol_violation"),
                CloseKind::KeyLimit => ("local", "key_limit"),
                CloseKind::PathMtu => ("local", "path_mtu"),
            };
            put(out, format_args!("\"owner\":\"{owner}\",\"trigger\":\"{trigger}\""));
            if let Some(code) = code {
                put(out, format_args!(",\"connection_code\":{code}"));
            }
        }
    }
}

fn write_remote(out: &mut Vec<u8>, remote: &PathAddr) {
    match remote.ip() {
        Some(address) => put(
            out,
            format_args!("\"dst_ip\":\"{}\",\"dst_port\":{}", address.ip(), address.port()),
        ),
        None => put(out, format_args!("\"dst\":\"{remote}\"")),
    }
}

fn write_packet(out: &mut Vec<u8>, pn: u64, bytes: u32) {
    put(
        out,
        format_args!(
            "\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{pn}}},\"raw\":{{\"length\":{bytes}}}"
        ),
    );
}

fn write_frames(
    out: &mut Vec<u8>,
    frames: FrameKinds,
    stream: Option<StreamFrame>,
    ack: Option<(&AckedRanges, Duration)>,
) {
    out.extend_from_slice(b",\"frames\":[");
    let before = out.len();
    if frames.contains(FrameKinds::ACK) {
        out.extend_from_slice(b"{\"frame_type\":\"ack\"");
        if let Some((acked, delay)) = ack {
            put(out, format_args!(",\"ack_delay\":{},\"acked_ranges\":[", millis(delay)));
            for (i, range) in acked.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                put(out, format_args!("{comma}[{},{}]", range.start(), range.end()));
            }
            out.push(b']');
        }
        out.extend_from_slice(b"},");
    }
    if let Some(StreamFrame { id, offset, len, fin }) = stream {
        put(
            out,
            format_args!(
                "{{\"frame_type\":\"stream\",\"stream_id\":{id},\"offset\":{offset},\"length\":{len},\"fin\":{fin}}},"
            ),
        );
    } else if frames.contains(FrameKinds::STREAM) {
        out.extend_from_slice(b"{\"frame_type\":\"stream\"},");
    }
    for (kind, name) in FRAME_NAMES {
        if frames.contains(kind) {
            put(out, format_args!("{{\"frame_type\":\"{name}\"}},"));
        }
    }
    if out.len() > before {
        out.pop();
    }
    out.push(b']');
}

fn write_metrics(out: &mut Vec<u8>, metrics: &Metrics) {
    put(
        out,
        format_args!(
            "\"congestion_window\":{},\"bytes_in_flight\":{},\"pacing_rate\":{},\"latest_rtt\":{},\
             \"smoothed_rtt\":{},\"min_rtt\":{},\"rtt_variance\":{}",
            metrics.congestion_window,
            metrics.bytes_in_flight,
            metrics.pacing_rate.saturating_mul(8),
            millis(metrics.latest_rtt),
            millis(metrics.smoothed_rtt),
            millis(metrics.min_rtt),
            millis(metrics.rtt_variance),
        ),
    );
    if let Some(threshold) = metrics.slow_start_threshold {
        put(out, format_args!(",\"ssthresh\":{threshold}"));
    }
}

fn record(out: &mut Vec<u8>, json: std::fmt::Arguments<'_>) {
    out.push(RECORD_SEPARATOR);
    put(out, json);
    out.push(b'\n');
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes any bytes");
}

/// Formats a duration as milliseconds with six decimal places.
fn millis(duration: Duration) -> impl std::fmt::Display {
    let nanos = duration.as_nanos();
    let (whole, part) = (nanos / 1_000_000, nanos % 1_000_000);
    std::fmt::from_fn(move |f| write!(f, "{whole}.{part:06}"))
}
