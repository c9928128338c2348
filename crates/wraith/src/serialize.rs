//! `Serialize` of events, progress and errors (feature `serde`).
//!
//! Each becomes one map. An event has its name in `event`, and hashes in hexadecimal. Errors are a
//! `kind` and a `message`. The README describes the form.

use data_encoding::HEXLOWER;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use wraith_discovery::{PlaceError, PlaceName};

use crate::{Error, ErrorKind, Event, FoundAt, Progress};

impl Serialize for ErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({ "kind": self.kind(), "message": self.to_string() }).serialize(serializer)
    }
}

impl Serialize for Progress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let active = self
            .active
            .iter()
            .map(|file| json!({ "name": file.name, "bytes": file.bytes, "size": file.size }));
        json!({
            "bytes": self.bytes,
            "bytes_total": self.bytes_total,
            "files": self.files,
            "files_total": self.files_total,
            "bytes_per_second": self.bytes_per_second,
            "current_file": self.current_file,
            "active": active.collect::<Vec<_>>(),
            "checked": self.checked.map(|checked| checked.bytes),
            "to_check": self.checked.map(|checked| checked.bytes_total),
            "path": self.path.map(crate::PathKind::name),
            "bottleneck": self.bottleneck.map(crate::Bottleneck::name),
            "is_waiting": self.is_waiting,
        })
        .serialize(serializer)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, mut fields) = fields(self);
        fields["event"] = name.into();
        fields.serialize(serializer)
    }
}

/// Returns the name of an event and a map with its fields.
fn fields(event: &Event) -> (&'static str, Value) {
    match event {
        Event::CodeUsed { place, peer } => {
            ("code_used", json!({ "place": place.to_string(), "peer": peer }))
        }
        Event::CodeBurned(place) => ("code_burned", json!({ "place": place.to_string() })),
        Event::LongCode(code) => ("long_code", json!({ "code": code })),
        Event::MakingLongCode(places) => {
            let places: Vec<_> = places.iter().map(PlaceName::to_string).collect();
            ("making_long_code", json!({ "places": places }))
        }
        Event::NoLongCode(missing) => ("no_long_code", json!({ "missing": missing_at(missing) })),
        Event::CodeExpired => ("code_expired", json!({})),
        Event::PlaceLost { place, why } => {
            ("place_lost", json!({ "place": place.to_string(), "why": why.to_string() }))
        }
        Event::PlaceBack(place) => ("place_back", json!({ "place": place.to_string() })),
        Event::Resumed => ("resumed", json!({})),
        Event::PeerFound(FoundAt::Address) => ("peer_found", json!({ "place": null })),
        Event::PeerFound(FoundAt::Place(place)) => {
            ("peer_found", json!({ "place": place.to_string() }))
        }
        Event::Connected { peer, remote, suite } => {
            let (address, backend) = (remote.to_string(), wraith_crypto::implementation(*suite));
            let suite = suite.name();
            (
                "connected",
                json!({ "peer": peer, "address": address, "suite": suite, "backend": backend }),
            )
        }
        Event::Path { peer, remote, route, why } => {
            let (address, path) = (remote.to_string(), route.kind.name());
            ("path", json!({ "peer": peer, "address": address, "path": path, "why": why }))
        }
        Event::Offered(offer) => (
            "offered",
            json!({
                "name": offer.name, "files": offer.files, "folders": offer.folders,
                "links": offer.links, "bytes": offer.bytes, "largest": offer.largest,
                "left_out": offer.left_out, "is_stream": offer.is_stream,
            }),
        ),
        Event::Accepted => ("accepted", json!({})),
        Event::File { path, status, bytes, root, position_free_root, change } => (
            "file",
            json!({
                "path": path, "status": status.name(), "bytes": bytes, "hash": hex(root),
                "position_free_hash": hex(position_free_root), "change": change.map(|it| it.name()),
            }),
        ),
        Event::Note { path, what } => ("note", json!({ "path": path, "what": what })),
        Event::StateNotStored(why) => ("state_not_stored", json!({ "why": why })),
        Event::ConnectionLost { why, seconds_left } => {
            ("connection_lost", json!({ "why": why.to_string(), "seconds_left": seconds_left }))
        }
        Event::Stopped { by, seconds_left } => {
            ("stopped", json!({ "by": by.to_string(), "seconds_left": seconds_left }))
        }
        Event::UnauthorizedPeer => ("unauthorized_peer", json!({})),
        Event::RefusedUnread { total } => ("refused_unread", json!({ "total": total })),
        Event::ClocksDiffer { peer, seconds } => {
            ("clocks_differ", json!({ "peer": peer, "seconds": seconds }))
        }
        Event::OfferPostponed => ("offer_postponed", json!({})),
        Event::ClosedToNewReceivers(why) => ("closed_to_new_receivers", json!({ "error": why })),
        Event::Sent { report } => {
            let bytes = report.receipt.bytes;
            ("sent", json!({ "receiver": report.receiver, "files": report.files, "bytes": bytes }))
        }
        Event::ReceiptStored(path) => ("receipt_stored", json!({ "path": path.to_string_lossy() })),
        Event::ReceiptNotStored(why) => ("receipt_not_stored", json!({ "why": why })),
        Event::Served { done, of } => ("served", json!({ "done": done, "of": of })),
        Event::ReceiverReconnected => ("receiver_reconnected", json!({})),
        Event::ContactsChanged(contacts) => ("contacts_changed", json!({ "contacts": contacts })),
        Event::ReceiverFailed(error) => ("receiver_failed", json!({ "error": error })),
        Event::Lagged(events) => ("lagged", json!({ "events": events })),
        Event::Done => ("done", json!({})),
        Event::Failed(error) => ("failed", json!({ "error": error })),
    }
}

fn hex(hash: &Option<[u8; 32]>) -> Option<String> {
    hash.as_ref().map(|hash| HEXLOWER.encode(hash))
}

fn missing_at(missing: &[(PlaceName, PlaceError)]) -> Vec<Value> {
    let entry = |(place, why): &(PlaceName, PlaceError)| {
        let (place, why) = (place.to_string(), why.to_string());
        json!({ "place": place, "why": why })
    };
    missing.iter().map(entry).collect()
}
