//! Offering files by code or ticket, or to a contact.

use std::sync::Arc;
use std::time::Duration;

use wraith::{Node, Offer, OfferBuilder, Payload};

use super::context::TransferContext;
use super::node::wraith_node_t;
use super::transfer::{self, Reports, wraith_transfer_t};
use crate::border::{Call, Callbacks, c_enum, c_struct, export, wraith_callbacks_t};
use crate::bytes::wraith_bytes_t;
use crate::options::{bind, millis, nonzero, path, set};
use crate::status::{Failure, Outcome};

c_enum! {
    /// The recipient of an offer.
    pub enum wraith_offer_to_t {
        /// Any receiver with the code made for the offer.
        WRAITH_OFFER_BY_CODE = 0,
        /// Any receiver with the ticket.
        WRAITH_OFFER_BY_TICKET = 1,
        /// The contact named in the options.
        WRAITH_OFFER_TO_CONTACT = 2,
    }
}

/// For `receivers`: any number, until the offer is cancelled.
pub const WRAITH_ANY_NUMBER: u32 = u32::MAX;

c_struct! {
    /// Options of an offer. All zeros but `struct_size` is an offer by code, to one receiver.
    pub struct wraith_offer_options_t {
        /// `sizeof(wraith_offer_options_t)`.
        pub struct_size: usize,
        /// A `wraith_offer_to_t`.
        pub to: u32,
        /// Number of receivers, or `WRAITH_ANY_NUMBER`; 0 means 1.
        pub receivers: u32,
        /// Name of the contact, for `WRAITH_OFFER_TO_CONTACT`.
        pub contact: wraith_bytes_t,
        /// Listening address, `IP:PORT`; empty for all local addresses.
        pub bind: wraith_bytes_t,
        /// Rate limit in bytes per second; 0 for no limit.
        pub bytes_per_second: u64,
        /// Lifetime of the code in seconds; 0 for one hour.
        pub expires_s: u64,
        /// Time limit for the first connection, in milliseconds; 0 for the default.
        pub timeout_ms: u64,
        /// Interval of `WRAITH_EVENT_PROGRESS` in milliseconds; 0 for none.
        pub progress_ms: u64,
    }
}

fn apply(
    call: &Call,
    mut builder: OfferBuilder,
    options: &wraith_offer_options_t,
    node: &Node,
) -> Outcome<OfferBuilder> {
    use wraith_offer_to_t::*;
    builder = match wraith_offer_to_t::of(options.to) {
        Some(WRAITH_OFFER_BY_CODE) => builder.by_code(),
        Some(WRAITH_OFFER_BY_TICKET) => builder.by_ticket(),
        Some(WRAITH_OFFER_TO_CONTACT) => {
            builder.to_contact(node.contact(call.text_field(options.contact)?)?)
        }
        None => return Err(Failure::input("an offer goes by code, by ticket or to a contact")),
    };
    builder = match options.receivers {
        WRAITH_ANY_NUMBER => builder.any_number(),
        receivers => builder.receivers(receivers.max(1)),
    };
    builder = set(builder, bind(call, options.bind)?, OfferBuilder::bind_to);
    let life = nonzero(options.expires_s).map(Duration::from_secs);
    builder = set(builder, life, OfferBuilder::expires);
    Ok(builder.rate(nonzero(options.bytes_per_second)).timeout(millis(options.timeout_ms)))
}

export!(
    /// Offers the files and folders at `paths`. Returns as soon as there is a code or ticket to
    /// show; no file content has been read by then. `options` and `callbacks` may be NULL.
    pub fn wraith_offer(
        call: &Call,
        node: Object<wraith_node_t>,
        paths: *const wraith_bytes_t,
        paths_count: usize,
        options: Options<wraith_offer_options_t>,
        callbacks: Options<wraith_callbacks_t>,
    ) -> Outcome<wraith_transfer_t> {
        let paths = call.slices(paths, paths_count)?;
        let paths = paths.into_iter().map(path).collect::<Outcome<Vec<_>>>()?;
        let callbacks = callbacks.map(Callbacks::new);
        let mut builder = node.node.offer(Payload::paths(paths));
        let mut progress_ms = 0;
        if let Some(options) = options {
            builder = apply(call, builder, &options, &node.node)?;
            progress_ms = options.progress_ms;
        }
        let offer = Arc::new(node.wait_for(builder.start())??);
        let reports = Reports { callbacks, events: offer.events(), progress_ms };
        transfer::start(node, Some(Arc::clone(&offer)), reports, |shared| run(offer, shared))
    }
);

async fn run(offer: Arc<Offer>, shared: Arc<TransferContext>) -> (Outcome, u64) {
    shared.figures.set_reader(offer.progress());
    let ended = shared.drive(|| offer.stop(), offer.finished()).await;
    let receivers = ended.as_ref().map_or(0, |sent| u64::from(sent.receivers));
    (ended.and_then(|sent| sent.complete()).map_err(Failure::from), receivers)
}
