//! Offering files by code or ticket, or to a contact.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use wraith::state::{Contact, ContactName};
use wraith::{Offer, OfferBuilder, Payload, TransferOptions};

use super::node::{NodeRuntime, node_runtime, path, wraith_node_t};
use super::transfer::{
    EndGuard, EventForwarder, Invitation, TransferContext, insert, wraith_transfer_t,
};
use crate::border::{Call, Callbacks, Plain, export, wraith_callbacks_t};
use crate::bytes::wraith_bytes_t;
use crate::status::wraith_status_t::WRAITH_NOT_FOUND;
use crate::status::{Failure, Outcome};

/// The recipient of an offer.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_offer_to_t {
    /// Any receiver with the code made for the offer.
    WRAITH_OFFER_BY_CODE = 0,
    /// Any receiver with the ticket.
    WRAITH_OFFER_BY_TICKET = 1,
    /// The contact named in the options.
    WRAITH_OFFER_TO_CONTACT = 2,
}

/// For `receivers`: any number, until the offer is cancelled.
pub const WRAITH_ANY_NUMBER: u32 = u32::MAX;

/// Options of an offer. All zeros but `struct_size` is an offer by code, to one receiver.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

// SAFETY: integers, and pointers with lengths.
unsafe impl Plain for wraith_offer_options_t {}

pub(crate) fn contact(node: &NodeRuntime, name: &str) -> Outcome<Contact> {
    let name: ContactName = name.parse().map_err(|error: wraith::state::ContactNameError| {
        Failure::input(format!("this cannot be a contact's name: {error}"))
    })?;
    let book = node.node.contacts().load().map_err(wraith::Error::from)?;
    let contact = book.named(&name).cloned();
    contact.ok_or_else(|| Failure::new(WRAITH_NOT_FOUND, format!("there is no contact {name}")))
}

fn apply(
    call: &Call,
    mut builder: OfferBuilder,
    options: &wraith_offer_options_t,
    node: &NodeRuntime,
) -> Outcome<OfferBuilder> {
    builder = match options.to {
        to if to == wraith_offer_to_t::WRAITH_OFFER_BY_CODE as u32 => builder.by_code(),
        to if to == wraith_offer_to_t::WRAITH_OFFER_BY_TICKET as u32 => builder.by_ticket(),
        to if to == wraith_offer_to_t::WRAITH_OFFER_TO_CONTACT as u32 => {
            builder.to_contact(contact(node, call.text_field(options.contact)?)?)
        }
        _ => return Err(Failure::input("an offer goes by code, by ticket or to a contact")),
    };
    builder = match options.receivers {
        0 => builder,
        WRAITH_ANY_NUMBER => builder.any_number(),
        receivers => builder.receivers(receivers),
    };
    let bind = call.text_field(options.bind)?;
    if !bind.is_empty() {
        let address: Result<SocketAddr, _> = bind.parse();
        builder = builder.bind_to(address.map_err(|_| Failure::input("`bind` is not IP:PORT"))?);
    }
    if options.expires_s > 0 {
        builder = builder.expires(Duration::from_secs(options.expires_s));
    }
    Ok(builder.options(transfer_options(options.bytes_per_second, options.timeout_ms)))
}

/// Returns the options of a transfer. 0 stands for the default.
pub(super) fn transfer_options(bytes_per_second: u64, timeout_ms: u64) -> TransferOptions {
    let mut options = TransferOptions::default();
    options.rate = (bytes_per_second > 0).then_some(bytes_per_second);
    options.timeout = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms));
    options
}

export!(
    /// Offers the files and folders at `paths`. Returns as soon as there is a code or ticket to
    /// show; no file content has been read by then. `options` and `callbacks` may be NULL.
    pub fn wraith_offer(
        call: &Call,
        node: wraith_node_t,
        paths: *const wraith_bytes_t,
        paths_count: usize,
        options: Options<wraith_offer_options_t>,
        callbacks: Options<wraith_callbacks_t>,
    ) -> Outcome<wraith_transfer_t> {
        let node = node_runtime(node)?;
        let paths = call.slices(paths, paths_count)?;
        let paths = paths.into_iter().map(path).collect::<Outcome<Vec<_>>>()?;
        let callbacks = callbacks.map(Callbacks::new);
        let shared = TransferContext::new(&node);
        let forwarder = EventForwarder { shared: Arc::clone(&shared), node: node.node.clone() };
        let mut builder = node.node.offer(Payload::paths(paths)).observer(Arc::new(forwarder));
        let mut progress_ms = 0;
        if let Some(options) = options {
            builder = apply(call, builder, &options, &node)?;
            progress_ms = options.progress_ms;
        }
        let offer = node.wait_for(builder.start())??;
        let invitation = Invitation {
            code: offer.code().map(ToString::to_string),
            ticket: offer.ticket().map(ToString::to_string),
            continues_for: offer.continues_for().iter().flat_map(|id| *id.as_bytes()).collect(),
        };
        shared.set_figures(offer.progress());
        node.spawn(run(offer, Arc::clone(&shared), progress_ms));
        insert(node, shared, callbacks, invitation)
    }
);

async fn run(offer: Offer, shared: Arc<TransferContext>, progress_ms: u64) {
    let end_guard = EndGuard::new(Arc::clone(&shared));
    let ended = drive(&shared, progress_ms, || offer.stop(), offer.finished()).await;
    let receivers = ended.as_ref().map_or(0, |sent| u64::from(sent.receivers));
    let result = ended.and_then(|sent| sent.complete()).map_err(Failure::from);
    end_guard.end(result, receivers);
}

/// Waits for the end of `work`, forwards a stop request, and reports progress every `progress_ms`.
pub(super) async fn drive<T>(
    shared: &TransferContext,
    progress_ms: u64,
    stop: impl Fn(),
    work: impl Future<Output = T>,
) -> T {
    let period = Duration::from_millis(progress_ms.max(1));
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_stopped = false;
    tokio::pin!(work);
    loop {
        tokio::select! {
            end = &mut work => return end,
            () = shared.stop.cancelled(), if !is_stopped => {
                stop();
                is_stopped = true;
            }
            _ = ticks.tick(), if progress_ms > 0 => shared.queue_progress(),
        }
    }
}
