//! A service: accepts raw connections of invited peers.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wraith::{Service, ServiceBuilder};

use super::connection::{ConnectionEntry, wraith_connection_t};
use crate::border::{Call, Callbacks, c_enum, c_struct, export, wraith_callbacks_t};
use crate::bytes::wraith_bytes_t;
use crate::files::callback_thread::CallbackThread;
use crate::files::context::TransferContext;
use crate::files::node::{NodeRuntime, wraith_node_t};
use crate::files::offer::WRAITH_ANY_NUMBER;
use crate::options::{bind, nonzero, set, switch};
use crate::status::wraith_status_t::WRAITH_CANCELLED;
use crate::status::{Failure, Outcome};
use crate::table::{Kind, Table};
use crate::waiting::wait;

/// A service.
pub type wraith_service_t = u64;

c_enum! {
    /// The peers that are invited to a service.
    pub enum wraith_callers_t {
        /// Peers that use the code made for the service.
        WRAITH_CALLERS_BY_CODE = 0,
        /// Every peer that has the ticket.
        WRAITH_CALLERS_BY_TICKET = 1,
        /// All contacts of the node that know the name in the options.
        WRAITH_CALLERS_CONTACTS = 2,
    }
}

c_struct! {
    /// Options of a service. All zeros but `struct_size` is a service by code, for one peer.
    pub struct wraith_serve_options_t {
        /// `sizeof(wraith_serve_options_t)`.
        pub struct_size: usize,
        /// A `wraith_callers_t`.
        pub callers: u32,
        /// Number of peers that can use the code, or `WRAITH_ANY_NUMBER`; 0 means 1. Each of them
        /// can connect any number of times.
        pub uses: u32,
        /// Lifetime of the code in seconds; 0 for one hour, or one day for any number of peers.
        pub expires_s: u32,
        /// 1 to give the service a socket of its own. Without this, the offers and services of the
        /// node share one, so an observer of the network can see that they belong together.
        pub isolated: u32,
        /// Name of a service for contacts, which both sides know: 1 to 255 bytes.
        pub name: wraith_bytes_t,
        /// Listening address of a socket for this service alone, `IP:PORT`; empty for the socket of
        /// the node, where contacts look for it.
        pub bind: wraith_bytes_t,
    }
}

static wraith_service_t: Table<ServiceEntry> = Table::new(Kind::Service);

struct ServiceEntry {
    service: Arc<Service>,
    /// Cancelled when the handle is freed.
    freed: CancellationToken,
    node: Arc<NodeRuntime>,
}

fn apply(
    call: &Call,
    mut builder: ServiceBuilder,
    options: &wraith_serve_options_t,
) -> Outcome<ServiceBuilder> {
    use wraith_callers_t::*;
    builder = match wraith_callers_t::of(options.callers) {
        Some(WRAITH_CALLERS_BY_CODE) => {
            builder.callers(Some(options.uses).filter(|uses| *uses != WRAITH_ANY_NUMBER))
        }
        Some(WRAITH_CALLERS_BY_TICKET) => builder.by_ticket(),
        Some(WRAITH_CALLERS_CONTACTS) => builder.for_contacts(call.text_field(options.name)?),
        None => return Err(Failure::input("a service is by code, by ticket or for contacts")),
    };
    let life = nonzero(options.expires_s.into()).map(Duration::from_secs);
    builder = set(builder, life, ServiceBuilder::expires);
    if switch(options.isolated)? {
        builder = builder.isolated();
    }
    Ok(set(builder, bind(call, options.bind)?, ServiceBuilder::bind_to))
}

export!(
    /// Starts a service. Returns as soon as its code or ticket is available, and callers can
    /// connect. `options` may be NULL.
    pub fn wraith_serve(
        call: &Call,
        node: Object<wraith_node_t>,
        options: Options<wraith_serve_options_t>,
    ) -> Outcome<wraith_service_t> {
        let builder = match options {
            Some(options) => apply(call, node.node.serve(), &options)?,
            None => node.node.serve().by_code(),
        };
        let service = Arc::new(node.wait_for(builder.start())??);
        wraith_service_t.insert(ServiceEntry { service, freed: CancellationToken::new(), node })
    }

    /// Returns the code of a service, for people to say. `WRAITH_NOT_FOUND` if it has none.
    pub fn wraith_service_code(service: Object<wraith_service_t>, out: Buffer) -> Outcome {
        let code = service.service.code().map(ToString::to_string);
        out.write_found(code, "this service has no code")
    }

    /// Returns the ticket of a service by ticket: a secret, valid for any peer that has it.
    /// `WRAITH_NOT_FOUND` if it has none.
    pub fn wraith_service_ticket(service: Object<wraith_service_t>, out: Buffer) -> Outcome {
        let ticket = service.service.ticket().map(ToString::to_string);
        out.write_found(ticket, "this service has no ticket")
    }

    /// Returns the listening address of a service, `IP:PORT`.
    pub fn wraith_service_address(service: Object<wraith_service_t>, out: Buffer) -> Outcome {
        out.write(service.service.address().to_string().as_bytes())
    }

    /// Returns the names of the meeting places at which peers with the code, or contacts, can find
    /// the service, one a line. No bytes if there are none.
    pub fn wraith_service_places(service: Object<wraith_service_t>, out: Buffer) -> Outcome {
        let places: Vec<_> = service.service.places().iter().map(ToString::to_string).collect();
        out.write(places.join("\n").as_bytes())
    }

    /// Reports the events of a service: of codes, meeting places, relays and paths. The first call
    /// gets them from the beginning. `callbacks.ask` is not called. The last event comes when the
    /// service ends, unless it is freed before.
    pub fn wraith_service_watch(
        service: Object<wraith_service_t>,
        callbacks: Options<wraith_callbacks_t>,
    ) -> Outcome {
        let callbacks = callbacks.ok_or_else(|| Failure::input("there are no callbacks"))?;
        let (ending, freed) = (Arc::clone(&service.service), service.freed.clone());
        let result = service.node.run(async move {
            tokio::select! {
                () = freed.cancelled() => Ok(()),
                ended = ending.finished() => Ok(ended?),
            }
        });
        let (stop, freed) = (CancellationToken::new(), service.freed.clone());
        let (shared, questions) = TransferContext::new(stop, freed, result);
        let (node, events) = (service.node.node.clone(), service.service.events());
        let thread = CallbackThread { shared, node, events, questions, progress_ms: 0 };
        thread.start(Callbacks::new(callbacks))
    }

    /// Waits for the next connection of an invited peer, for at most `timeout_ms` milliseconds (or
    /// `WRAITH_FOREVER`).
    ///
    /// Returns `WRAITH_TIMED_OUT` if none came. `WRAITH_CANCELLED` if the service was closed or
    /// freed, also meanwhile, or its node was shut down; `WRAITH_WRONG_CODE` if the code is no
    /// longer valid and no peer has used it. A service keeps at most 64 connections that no call
    /// has accepted.
    pub fn wraith_service_accept(
        service: Object<wraith_service_t>,
        timeout_ms: u64,
    ) -> Outcome<wraith_connection_t> {
        let closed = || Failure::new(WRAITH_CANCELLED, "the service was closed");
        let connection = wait(timeout_ms, &service.freed, async {
            service.service.try_accept().await?.ok_or_else(closed)
        })?;
        ConnectionEntry::accepted(connection, &service.node).insert()
    }

    /// Ends a service gracefully: it accepts no more callers, delivers the finished streams of all
    /// its connections, also of accepted ones, and closes these connections. Waits for that, at
    /// most 3 s. The handle must still be freed.
    pub fn wraith_service_close(service: Object<wraith_service_t>) -> Outcome {
        let closing = Arc::clone(&service.service);
        service.node.wait_for(async move { closing.close().await })
    }

    /// Frees the service. It accepts no more callers; its connections stay open.
    pub fn wraith_service_free(service: wraith_service_t) -> Outcome {
        wraith_service_t.remove(service).map(|entry| entry.freed.cancel())
    }
);
