//! Batches of session messages: one call, one buffer, and several threads if there are enough bytes
//! to justify them.
//!
//! Results are in the order of the inputs. If one message cannot be sealed, none is; opening has a
//! result for each message.

use std::fmt;
use std::mem;
use std::ops::Range;
use std::thread;

use thiserror::Error;
use wraith_crypto::{AeadKey, Suite, TAG_BYTES};
use zeroize::{Zeroize, Zeroizing};

use super::epoch::epoch_of;
use super::receive::{Receiver, Verified};
use super::send::NoNumber;
use super::{
    NUMBER_BYTES, OpenError, SealError, Session, check_lengths, check_message, seal_slice,
};
use crate::vault::VaultError;

/// Number of bytes that justify another thread: starting a thread takes about as long as sealing
/// them.
const THREAD_BYTES: usize = 512 << 10;
/// Maximum number of threads. Beyond it memory bandwidth is the bottleneck.
const THREADS_MAX: usize = 8;

/// Why a batch was not sealed or encrypted. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("message {index}: {why}")]
pub struct BatchError<E> {
    /// Index of the message, from 0.
    pub index: usize,
    /// Why this message cannot be sealed.
    pub why: E,
}

/// Sealed messages, contiguous in one buffer.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ranges: Vec<Range<usize>>,
}

impl Batch {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns whether the batch has no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Iterates over the messages, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.ranges.iter().map(|range| &self.bytes[range.clone()])
    }
}

/// Results of an opened batch. The texts are wiped when it is dropped.
pub struct OpenedBatch<E> {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) results: Vec<Result<(u64, Range<usize>), E>>,
}

impl<E: Clone> OpenedBatch<E> {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Returns whether the batch has no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Iterates over the number and text of each message, or the error, in order. A message of a
    /// [ratchet](crate::ratchet) has its index in the batch as its number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<(u64, &[u8]), E>> {
        self.results.iter().map(|result| match result {
            Ok((number, range)) => Ok((*number, &self.bytes[range.clone()])),
            Err(why) => Err(why.clone()),
        })
    }
}

impl<E> fmt::Debug for OpenedBatch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedBatch").field("len", &self.results.len()).finish_non_exhaustive()
    }
}

/// Verified messages whose numbers are not marked yet.
struct VerifiedBatch {
    bytes: Zeroizing<Vec<u8>>,
    verified: Vec<Result<(Verified, Range<usize>), OpenError>>,
}

impl VerifiedBatch {
    fn verified(&self) -> impl Iterator<Item = &Verified> {
        self.verified.iter().flatten().map(|(verified, _)| verified)
    }
}

impl Session {
    /// Seals all texts in order, with the same associated data.
    ///
    /// # Errors
    /// Names the first message that cannot be sealed. No number was used, and no message is sealed.
    pub fn seal_many(
        &mut self,
        aad: &[u8],
        texts: &[&[u8]],
    ) -> Result<Batch, BatchError<SealError>> {
        for (index, text) in texts.iter().enumerate() {
            check_lengths(aad, text).map_err(|why| BatchError { index, why })?;
        }
        let lens = || texts.iter().map(|text| text.len());
        while let Err((index, why)) = self.send.check(self.now, lens()) {
            if self.kept.is_none() || why != NoNumber::NotSaved {
                return Err(BatchError { index, why: why.into() });
            }
            self.want(texts.len() as u64);
            self.store().map_err(|why| BatchError { index, why: why.into() })?;
        }
        self.used = self.now;
        let mut out = Batch {
            bytes: vec![0; lens().map(Self::sealed_len).sum()],
            ranges: Vec::with_capacity(texts.len()),
        };
        let mut end = 0;
        for len in lens().map(Self::sealed_len) {
            out.ranges.push(end..end + len);
            end += len;
        }
        let mut rest = &mut out.bytes[..];
        let mut jobs = Vec::with_capacity(texts.len());
        let mut epoch = self.send.state.epoch;
        for text in texts {
            // The key changes within the batch: seal the collected messages with the old key first.
            let next = self.send.peek(self.now, text.len());
            if epoch_of(next) != epoch {
                seal_jobs(self.send.key(), self.suite, aad, mem::take(&mut jobs));
            }
            let taken = self.send.take(self.now, text.len());
            let number = taken.expect("all numbers of the batch were checked");
            epoch = self.send.state.epoch;
            let (slot, behind) = rest.split_at_mut(Self::sealed_len(text.len()));
            rest = behind;
            jobs.push(SealJob { number, text, slot });
        }
        seal_jobs(self.send.key(), self.suite, aad, jobs);
        Ok(out)
    }

    /// Opens all messages, with the same associated data. Of two equal messages the first opens. In
    /// a vault, the session is stored once, before this returns.
    ///
    /// # Errors
    /// [`VaultError`]: the state is unchanged, and no message was opened. Errors of single messages
    /// are among the results.
    pub fn open_many(
        &mut self,
        aad: &[u8],
        messages: &[&[u8]],
    ) -> Result<OpenedBatch<OpenError>, VaultError> {
        let batch = self.verify_many(aad, messages);
        self.store_opened(batch.verified())?;
        Ok(self.accept_many(batch))
    }

    /// Decrypts and verifies the messages without marking their numbers.
    fn verify_many(&mut self, aad: &[u8], messages: &[&[u8]]) -> VerifiedBatch {
        self.receive.prepare(messages.iter().copied());
        let good = |message: &&[u8]| check_message(aad, message.len());
        let room = |message: &&[u8]| good(message).map_or(0, |()| message.len());
        let mut bytes = Zeroizing::new(vec![0; messages.iter().map(room).sum()]);
        let mut verified = Vec::with_capacity(messages.len());
        let mut rest = &mut bytes[..];
        let mut jobs = Vec::with_capacity(messages.len());
        let mut end = 0;
        for message in messages {
            let slot = rest.split_off_mut(..room(message)).expect("room was made for all");
            if good(message).is_ok() {
                jobs.push((
                    verified.len(),
                    end + NUMBER_BYTES..end + message.len() - TAG_BYTES,
                    *message,
                    slot,
                ));
                end += message.len();
            }
            verified.push(Err(OpenError::Length));
        }
        for (index, range, result) in open_jobs(&self.receive, aad, jobs) {
            verified[index] = result.map(|verified| (verified, range));
        }
        VerifiedBatch { bytes, verified }
    }

    /// Marks the numbers of the verified messages.
    fn accept_many(&mut self, batch: VerifiedBatch) -> OpenedBatch<OpenError> {
        let VerifiedBatch { mut bytes, verified } = batch;
        self.used = self.now;
        let results = verified.into_iter().map(|each| {
            let (verified, range) = each?;
            match self.receive.accept(self.now, &verified) {
                Ok(()) => Ok((verified.number, range)),
                Err(why) => {
                    bytes[range].zeroize();
                    Err(why)
                }
            }
        });
        let results = results.collect();
        OpenedBatch { bytes, results }
    }
}

struct SealJob<'a> {
    number: u64,
    text: &'a [u8],
    slot: &'a mut [u8],
}

fn seal_jobs(key: &AeadKey, suite: Suite, aad: &[u8], jobs: Vec<SealJob<'_>>) {
    spread(
        jobs,
        |job| job.text.len(),
        |job| {
            seal_slice(key, suite, job.number, aad, job.text, job.slot);
        },
    );
}

type OpenJob<'a> = (usize, Range<usize>, &'a [u8], &'a mut [u8]);

fn open_jobs(
    receiver: &Receiver,
    aad: &[u8],
    jobs: Vec<OpenJob<'_>>,
) -> Vec<(usize, Range<usize>, Result<Verified, OpenError>)> {
    spread(
        jobs,
        |(_, _, message, _)| message.len(),
        |(index, range, message, slot)| {
            slot.copy_from_slice(message);
            let result = receiver.verify(aad, slot);
            if result.is_err() {
                slot.zeroize();
            }
            (index, range, result)
        },
    )
}

/// Runs all jobs and keeps their order. Uses several threads if there are cores and enough bytes.
fn spread<J: Send, R: Send>(
    mut jobs: Vec<J>,
    len: impl Fn(&J) -> usize,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let total: usize = jobs.iter().map(&len).sum();
    let worth = (total / THREAD_BYTES).min(THREADS_MAX);
    let threads = match worth {
        0 | 1 => 1,
        _ => worth.min(thread::available_parallelism().map_or(1, usize::from)),
    };
    if threads < 2 {
        return jobs.into_iter().map(work).collect();
    }
    let share = total.div_ceil(threads);
    thread::scope(|scope| {
        let mut running = Vec::with_capacity(threads);
        while !jobs.is_empty() {
            let mut bytes = 0;
            let taken = jobs.iter().take_while(|job| {
                let fits = bytes < share;
                bytes += len(job);
                fits
            });
            let behind = jobs.split_off(taken.count());
            let part = mem::replace(&mut jobs, behind);
            let work = &work;
            running.push(scope.spawn(move || part.into_iter().map(work).collect::<Vec<R>>()));
        }
        let joined = running.into_iter().map(|thread| thread.join().expect("no work panics"));
        joined.flatten().collect()
    })
}
