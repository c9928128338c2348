//! Fetching by code or ticket, with the consent of the caller.

use std::sync::Arc;

use wraith::{AcceptOptions, OfferRequest, OnConflict, Source, Transfer};

use super::context::TransferContext;
use super::event::OfferShown;
use super::event::wraith_answer_t::*;
use super::node::wraith_node_t;
use super::transfer::{self, Reports, wraith_transfer_t};
use crate::border::{Callbacks, c_enum, c_struct, export, wraith_callbacks_t};
use crate::options::{millis, nonzero, path, switch};
use crate::status::wraith_status_t::WRAITH_POSTPONED;
use crate::status::{Failure, Outcome};

c_enum! {
    /// Policy for a name that already exists.
    pub enum wraith_on_conflict_t {
        /// Give the new file another name.
        WRAITH_RENAME = 0,
        /// Keep the existing file and skip the new one.
        WRAITH_SKIP = 1,
        /// Replace the existing file, once all of the new one is verified.
        WRAITH_OVERWRITE = 2,
    }
}

c_struct! {
    /// Options of a fetch. All zeros but `struct_size` asks first, and renames on conflicts.
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
}

export!(
    /// Fetches the offer behind `source`, a code or a ticket, into `folder`, which is created when
    /// the offer is accepted. Returns at once. `callbacks` needs `ask`, unless `options` accepts
    /// any offer.
    pub fn wraith_fetch(
        node: Object<wraith_node_t>,
        source: Text,
        folder: Bytes,
        options: Options<wraith_fetch_options_t>,
        callbacks: Options<wraith_callbacks_t>,
    ) -> Outcome<wraith_transfer_t> {
        let (source, folder): (Source, _) = (source.parse()?, path(folder)?);
        let callbacks = callbacks.map(Callbacks::new);
        let mut builder = node.node.fetch(source, folder);
        let (mut conflicts, mut accept_all, mut progress_ms) = (OnConflict::Rename, false, 0);
        if let Some(options) = options {
            conflicts = policy(options.on_conflict)?;
            accept_all = switch(options.accept_all)?;
            progress_ms = options.progress_ms;
            builder = builder
                .sync(!switch(options.no_sync)?)
                .keep_modes(switch(options.keep_modes)?)
                .rate(nonzero(options.bytes_per_second))
                .timeout(millis(options.timeout_ms));
        }
        if !accept_all && !callbacks.as_ref().is_some_and(Callbacks::can_ask) {
            return Err(Failure::input("without accept_all, the callback `ask` is required"));
        }
        if accept_all {
            let transfer = builder.accept_all(conflicts);
            let reports = Reports { callbacks, events: transfer.events(), progress_ms };
            return transfer::start(node, None, reports, |shared| run(transfer, shared));
        }
        let asking = builder.request_offer();
        let events = asking.events().expect("the offer was not taken");
        let reports = Reports { callbacks, events, progress_ms };
        transfer::start(node, None, reports, |shared| async move {
            match ask_user(asking, conflicts, &shared).await {
                Ok(transfer) => run(transfer, shared).await,
                Err(failure) => (Err(failure), 0),
            }
        })
    }
);

fn policy(on_conflict: u32) -> Outcome<OnConflict> {
    use wraith_on_conflict_t::*;
    match wraith_on_conflict_t::of(on_conflict) {
        Some(WRAITH_RENAME) => Ok(OnConflict::Rename),
        Some(WRAITH_SKIP) => Ok(OnConflict::Skip),
        Some(WRAITH_OVERWRITE) => Ok(OnConflict::Overwrite),
        None => Err(Failure::input("on_conflict has an unknown value")),
    }
}

async fn run(transfer: Transfer, shared: Arc<TransferContext>) -> (Outcome, u64) {
    shared.figures.set_reader(transfer.progress());
    let ended = shared.drive(|| transfer.stop(), transfer.finished()).await;
    (ended.and_then(|received| received.complete()).map_err(Failure::from), 0)
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
        answer = shared.ask(offer) => answer,
    };
    // The stop may have come after it was polled and before the answer was.
    match answer.filter(|_| !shared.stop.is_cancelled()) {
        Some(WRAITH_ACCEPT) => Ok(incoming.accept(AcceptOptions::on_conflict(policy))),
        Some(WRAITH_REFUSE) => Err(incoming.refuse("").await.into()),
        Some(WRAITH_POSTPONE) => {
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

    use tokio_util::sync::CancellationToken;

    use super::super::node::isolated;
    use super::*;
    use crate::status::wraith_status_t::WRAITH_CANCELLED;
    use crate::waiting::TaskResult;

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
            let (stop, freed) = (CancellationToken::new(), CancellationToken::new());
            let result = TaskResult(tokio::sync::watch::channel(None).1);
            let (shared, mut questions) = TransferContext::new(stop, freed, result);
            let source = Source::from(offer.ticket().unwrap().clone());
            let asking = receiving.node.fetch(source, target.clone()).request_offer();
            let asked = ask_user(asking, OnConflict::Rename, &shared);
            tokio::pin!(asked);
            let (_, answer) = tokio::select! {
                _ = &mut asked => panic!("nobody was asked"),
                question = questions.recv() => question.unwrap(),
            };
            // As a callback that frees its transfer does, before the task polls either.
            shared.stop.cancel();
            answer.send(WRAITH_ACCEPT).unwrap();
            let failure = asked.await.map(drop).expect_err("it was accepted");
            assert_eq!(failure.status, WRAITH_CANCELLED);
        }
        assert!(!target.exists());
    }
}
