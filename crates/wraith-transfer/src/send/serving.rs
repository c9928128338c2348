//! How a sender answers one receiver: a state machine without I/O, clock or threads.
//!
//! The caller announces the entries of the manifest and hands over the receiver's messages. It takes
//! the wanted files, reads and sends them, and reports each result before it sends the record. The
//! receipt is compared with these results. Threads share the machine behind a lock
//! ([`super::shared_serving`]); the tests run it in the simulator.
//!
//! Invariants:
//!
//! - Every entry is decided once, and sent at most once.
//! - A receipt is accepted only after every entry is resolved, and only if it covers all of them.

use wraith_crypto::NodeId;
use wraith_files::Root;

use super::delta_requests::DeltaRequest;
use super::ledger::{EntryCounts, EntryLedger, Mismatch};
use super::plan::{Decisions, Job, Passed, Plan, Planned};
use super::pushes::Pushes;
use crate::error::TransferError;
use crate::exception::Exception;
use crate::message::{Accept, Message, Want};
use crate::receipt::Receipt;
use crate::role::Role;

/// Terms of the transfer, fixed before the receiver accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) transfer_id: [u8; 16],
    pub(crate) receiver: NodeId,
    /// Sender's identity required in the receipt; not checked if `None`.
    pub(crate) sender: Option<NodeId>,
    /// True if deltas were offered.
    pub(crate) delta: bool,
}

impl Terms {
    /// Checks that the receiver signed the receipt, and for this transfer.
    pub(crate) fn check(&self, receipt: &Receipt) -> Result<(), TransferError> {
        receipt.verify(&self.receiver).map_err(|forged| violation(forged.to_string()))?;
        let is_sender = self.sender.is_none_or(|own| own == receipt.sender);
        if receipt.transfer_id != self.transfer_id || !is_sender {
            return Err(violation("a receipt for another transfer"));
        }
        Ok(())
    }
}

/// The state of one answer; see the module documentation.
#[derive(Debug)]
pub(crate) struct Serving<T> {
    terms: Terms,
    is_accepted: bool,
    plan: Plan<T>,
    pushes: Pushes,
    ledger: EntryLedger,
    /// Set once the manifest is complete.
    manifest: Option<[u8; 32]>,
}

/// Result of a message, for the caller to act on.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    Accepted {
        rate: Option<u64>,
        parallel: Option<u64>,
    },
    /// Entries are decided. Wanted files can be taken now.
    Decided(Decisions<T>),
    /// The receiver lacks these entries, which were sent.
    Excepted(Vec<(u32, Exception)>),
    /// A request for the worker of a delta file.
    Delta(DeltaRequest),
    /// The receiver waits for its disk.
    Busy,
    /// The transfer is complete: the receipt is valid and covers every entry.
    Receipt(Receipt),
}

impl<T: Planned> Serving<T> {
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            is_accepted: false,
            plan: Plan::new(),
            pushes: Pushes::default(),
            ledger: EntryLedger::new(),
            manifest: None,
        }
    }

    /// Handles a message of the receiver. An error ends the transfer.
    pub(crate) fn handle(&mut self, message: Message) -> Result<Answer<T>, TransferError> {
        match message {
            Message::Accept(Accept { rate, parallel, .. }) if !self.is_accepted => {
                self.is_accepted = true;
                Ok(Answer::Accepted { rate, parallel })
            }
            Message::Want(want) if self.is_accepted => self.decide(&want).map(Answer::Decided),
            Message::Exceptions(exceptions) if self.is_accepted => {
                let known = exceptions.entries.iter().map(|entry| self.ledger.except(entry));
                known.collect::<Result<_, _>>().map(Answer::Excepted).map_err(violation)
            }
            Message::Refine(refine) if self.is_accepted => {
                Ok(Answer::Delta(DeltaRequest::Refine(refine)))
            }
            Message::Lack(lack) if self.is_accepted => Ok(Answer::Delta(DeltaRequest::Lack(lack))),
            Message::DiskBusy(_) if self.is_accepted => Ok(Answer::Busy),
            Message::Receipt(body) if self.is_accepted => {
                let receipt = Receipt::from_body(&body);
                self.check(&receipt)?;
                Ok(Answer::Receipt(receipt))
            }
            other => Err(violation(format!("an unexpected {}", other.name()))),
        }
    }

    /// Applies a Want, and records the entries that need no worker.
    fn decide(&mut self, want: &Want) -> Result<Decisions<T>, TransferError> {
        if !want.delta.is_empty() && !self.terms.delta {
            return Err(violation("it requests deltas that were not offered"));
        }
        let pushes = &self.pushes;
        let decided = self.plan.decide(want, |entry| pushes.root_of(entry)).map_err(violation)?;
        self.pushes.decided(want.upto);
        for (entry, item, root) in &decided.pushed {
            self.ledger.resolved(*entry, root, item.file_bytes().unwrap_or(0));
        }
        for &Passed { entry, exception, .. } in &decided.passed {
            match exception {
                Some(exception) => self.ledger.left_out(entry, exception),
                None => self.ledger.passed(entry),
            }
        }
        Ok(decided)
    }

    /// Returns false while too many entries wait: no more may be announced then.
    pub(crate) fn has_room(&self) -> bool {
        self.plan.has_room()
    }

    /// Adds entries, before the manifest stream carries them.
    pub(crate) fn announce(&mut self, entries: Vec<T>) {
        self.plan.announce(entries);
    }

    /// Marks the end of the manifest, before its trailer is sent. It has this hash.
    pub(crate) fn end_manifest(&mut self, hash: [u8; 32]) {
        debug_assert!(self.manifest.is_none(), "a manifest is written once");
        self.manifest = Some(hash);
    }

    /// Returns true if a wanted file can be taken.
    pub(crate) fn has_work(&self) -> bool {
        self.plan.has_work()
    }

    /// Takes wanted files in order: the first one, then more while `more` returns true.
    pub(crate) fn take(&mut self, more: impl FnMut(&Job<T>) -> bool) -> Vec<Job<T>> {
        self.plan.take(more)
    }

    /// Puts a file back in front of all others.
    pub(crate) fn put_back(&mut self, job: Job<T>) {
        self.plan.put_back(job);
    }

    /// Claims `entry`, which has this root, for a push. Returns false if it is decided.
    pub(crate) fn claim_push(&mut self, entry: u32, root: Root) -> bool {
        self.pushes.claim(entry, root)
    }

    /// Records that the content of a file is about to be sent, or is the same at the receiver.
    pub(crate) fn resolved(&mut self, entry: u32, root: &Root, bytes: u64) {
        self.ledger.resolved(entry, root, bytes);
    }

    /// Records that a wanted file is not sent.
    pub(crate) fn left_out(&mut self, entry: u32, exception: Exception) {
        self.ledger.left_out(entry, exception);
    }

    pub(crate) fn counts(&self) -> EntryCounts {
        self.ledger.counts()
    }

    /// Checks the receipt against the records (SPEC §10.7).
    fn check(&self, receipt: &Receipt) -> Result<(), TransferError> {
        self.terms.check(receipt)?;
        if self.manifest != Some(receipt.manifest) || !self.plan.is_resolved() {
            return Err(violation("an early receipt, or one for another manifest"));
        }
        let what = match self.ledger.check(receipt) {
            Ok(()) => return Ok(()),
            Err(Mismatch::EntryCounts) => "the counts in the receipt differ from the data sent",
            Err(Mismatch::Contents) => "the contents in the receipt differ from the data sent",
        };
        Err(TransferError::Verification { what: what.into() })
    }
}

/// Returns the error for a violation of SPEC section 10 by the receiver.
fn violation(what: impl Into<String>) -> TransferError {
    TransferError::Protocol { peer: Role::Receiver, what: what.into() }
}
