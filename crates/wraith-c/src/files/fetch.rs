//! Fetching by code or ticket, with the consent of the caller.

use std::sync::Arc;

use wraith::{AcceptOptions, FetchBuilder, OfferRequest, OnConflict, Source, Transfer};

use super::event::OfferShown;
use super::node::{node_runtime, path, switch, wraith_node_t};
use super::offer::{drive, transfer_options};
use super::transfer::{
    EndGuard, EventForwarder, Invitation, TransferContext, insert, wraith_transfer_t,
};
use crate::border::{Answer, Callbacks, Plain, export, wraith_callbacks_t};
use crate::status::wraith_status_t::WRAITH_POSTPONED;
use crate::status::{Failure, Outcome};

/// Policy for a name that already exists.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_on_conflict_t {
    /// Give the new file another name.
    WRAITH_RENAME = 0,
    /// Keep the existing file and skip the new one.
    WRAITH_SKIP = 1,
    /// Replace the existing file, once all of the new one is verified.
    WRAITH_OVERWRITE = 2,
}

/// Options of a fetch. All zeros but `struct_size` asks first, and renames on conflicts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_fetch_options_t {
    /// `sizeof(wraith_fetch_options_t)`.
    pub struct_size: usize,
    /// A `wraith_on_conflict_t`.
    pub on_conflict: u32,
    /// 1 to accept any offer without asking.
    pub accept_all: u32,
    /// 1 to end before everything is on stable storage.
    pub no_sync: u32,
    /// 1 to preserve all permission bits.
    pub keep_modes: u32,
    /// Rate limit in bytes per second; 0 for no limit.
    pub bytes_per_second: u64,
    /// Time limit for finding the sender, in milliseconds; 0 for the default.
    pub timeout_ms: u64,
    /// Interval of `WRAITH_EVENT_PROGRESS` in milliseconds; 0 for none.
    pub progress_ms: u64,
}

// SAFETY: integers.
unsafe impl Plain for wraith_fetch_options_t {}

/// How a fetch decides and reports progress.
struct FetchPolicy {
    accept_all: bool,
    policy: OnConflict,
    progress_ms: u64,
}

export!(
    /// Fetches the offer behind `source`, a code or a ticket, into `folder`, which is created when
    /// the offer is accepted. Returns at once. `callbacks` needs `ask`, unless `options` accepts
    /// any offer.
    pub fn wraith_fetch(
        node: wraith_node_t,
        source: Text,
        folder: Bytes,
        options: Options<wraith_fetch_options_t>,
        callbacks: Options<wraith_callbacks_t>,
    ) -> Outcome<wraith_transfer_t> {
        let node = node_runtime(node)?;
        let (source, folder): (Source, _) = (source.parse()?, path(folder)?);
        let callbacks = callbacks.map(Callbacks::new);
        let mut plan =
            FetchPolicy { accept_all: false, policy: OnConflict::Rename, progress_ms: 0 };
        let shared = TransferContext::new(&node);
        let forwarder = EventForwarder { shared: Arc::clone(&shared), node: node.node.clone() };
        let mut builder = node.node.fetch(source, folder).observer(Arc::new(forwarder));
        if let Some(options) = options {
            plan.policy = policy(options.on_conflict)?;
            plan.accept_all = switch(options.accept_all)?;
            plan.progress_ms = options.progress_ms;
            builder = builder
                .options(transfer_options(options.bytes_per_second, options.timeout_ms))
                .sync(!switch(options.no_sync)?)
                .keep_modes(switch(options.keep_modes)?);
        }
        if !plan.accept_all && !callbacks.as_ref().is_some_and(Callbacks::can_ask) {
            return Err(Failure::input("without accept_all, the callback `ask` is required"));
        }
        let work = run(builder, plan, Arc::clone(&shared));
        let handle = insert(Arc::clone(&node), shared, callbacks, Invitation::default())?;
        node.spawn(work);
        Ok(handle)
    }
);

fn policy(on_conflict: u32) -> Outcome<OnConflict> {
    use wraith_on_conflict_t::*;
    [
        (WRAITH_RENAME, OnConflict::Rename),
        (WRAITH_SKIP, OnConflict::Skip),
        (WRAITH_OVERWRITE, OnConflict::Overwrite),
    ]
    .into_iter()
    .find(|(number, _)| *number as u32 == on_conflict)
    .map(|(_, policy)| policy)
    .ok_or_else(|| Failure::input("on_conflict has an unknown value"))
}

async fn run(builder: FetchBuilder, plan: FetchPolicy, shared: Arc<TransferContext>) {
    let end_guard = EndGuard::new(Arc::clone(&shared));
    let transfer = match plan.accept_all {
        true => Ok(builder.accept_all(plan.policy)),
        false => ask_user(builder.request_offer(), plan.policy, &shared).await,
    };
    let result = match transfer {
        Ok(transfer) => {
            shared.set_figures(transfer.progress());
            let work = transfer.finished();
            let ended = drive(&shared, plan.progress_ms, || transfer.stop(), work).await;
            ended.and_then(|received| received.complete()).map_err(Failure::from)
        }
        Err(failure) => Err(failure),
    };
    end_guard.end(result, 0);
}

/// Finds the sender and asks the caller whether to fetch its offer.
async fn ask_user(
    mut asking: OfferRequest,
    policy: OnConflict,
    shared: &TransferContext,
) -> Outcome<Transfer> {
    // A stop has priority over everything that is ready: a caller that frees a transfer within
    // `ask` and then accepts gets nothing.
    let found = tokio::select! {
        biased;
        () = shared.stop.cancelled() => None,
        found = asking.incoming() => Some(found),
    };
    let incoming = match found {
        Some(found) => found?,
        None => return Err(asking.cancel().await.into()),
    };
    let offer = OfferShown { sender: *incoming.sender().as_bytes(), info: incoming.offer() };
    let answer = tokio::select! {
        biased;
        () = shared.stop.cancelled() => None,
        () = incoming.withdrawn() => None,
        answer = shared.queue.push_question(offer) => answer.ok(),
    };
    match answer {
        Some(Answer::Accept) => Ok(incoming.accept(AcceptOptions::on_conflict(policy))),
        Some(Answer::Refuse) => Err(incoming.refuse("").await.into()),
        Some(Answer::Postpone) => {
            incoming.postpone().await;
            Err(Failure::new(WRAITH_POSTPONED, "the offer was postponed and stays valid"))
        }
        // The transfer ended by itself, or was cancelled or freed.
        None => Err(incoming.cancel().await.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::node::isolated;
    use super::super::queue::CallbackAction;
    use super::*;
    use crate::status::wraith_status_t::WRAITH_CANCELLED;

    /// With a random choice between the answer and the end, one round in three fails, and all of
    /// them succeed once in 17,000 runs.
    const ROUNDS: usize = 24;

    #[tokio::test]
    async fn accepting_in_a_transfer_that_was_freed_receives_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (film, target) = (folder.path().join("film"), folder.path().join("target"));
        fs::write(&film, [7; 1000]).unwrap();
        let [sending, receiving] = [isolated(), isolated()];
        let offer = sending.node.offer(film).by_ticket().any_number();
        let offer = offer.bind_to("127.0.0.1:0".parse().unwrap()).start().await.unwrap();
        for _ in 0..ROUNDS {
            let shared = TransferContext::new(&receiving);
            let source = Source::from(offer.ticket().unwrap().clone());
            let asking = receiving.node.fetch(source, target.clone()).request_offer();
            let asked = ask_user(asking, OnConflict::Rename, &shared);
            tokio::pin!(asked);
            let to_take = Arc::clone(&shared);
            let taken = tokio::task::spawn_blocking(move || to_take.queue.next());
            let answer = tokio::select! {
                _ = &mut asked => panic!("nobody was asked"),
                item = taken => match item.unwrap() {
                    CallbackAction::Question(_, answer) => answer,
                    _ => panic!("something else came first"),
                },
            };
            // As a callback that frees its transfer does, before the task polls either.
            shared.queue.close();
            shared.stop.cancel();
            answer.send(Answer::Accept).unwrap();
            let failure = asked.await.map(drop).expect_err("it was accepted");
            assert_eq!(failure.status, WRAITH_CANCELLED);
        }
        assert!(!target.exists());
    }
}
