//! Readers and writers that break the rules of their traits. Each ends as it should, on both sides.

use std::io::{self, Read, Write};

use wraith::{Error, ErrorKind, OnConflict, Payload, Role, Target, TransferError};

use crate::support::{LOOPBACK, Written, node, noise, soon, within};

const BYTES: usize = 1_000_000;

/// Returns the results of both sides, that of the sender first.
async fn transferred(
    reader: impl Read + Send + 'static,
    target: Target,
) -> (Option<Error>, Option<Error>) {
    let payload = Payload::reader("film", None, reader);
    let offer = within(node().offer(payload).by_ticket().bind_to(LOOPBACK).start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    let transfer = node().fetch(ticket, target).accept_all(OnConflict::Rename);
    let received = within(transfer.finished()).await.and_then(|done| done.complete().map(drop));
    let sent = soon(offer.finished()).await.and_then(|done| done.complete().map(drop));
    (sent.err(), received.err())
}

/// Passes bytes on, and returns a count that is one too high.
struct CountsTooMany<T>(T);

impl<T: Read> Read for CountsTooMany<T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)?;
        Ok(out.len() + 1)
    }
}

impl<T: Write> Write for CountsTooMany<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len() + 1)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Checks that both sides name the one whose program broke the rule.
fn check_role((sent, received): (Option<Error>, Option<Error>), by: Role) {
    for error in [sent.unwrap(), received.unwrap()] {
        match error.transfer() {
            Some(TransferError::Stream { role, .. } | TransferError::Panicked { role, .. }) => {
                assert_eq!(*role, by);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_count_beyond_the_buffer_ends_the_transfer_on_both_sides() {
    let reader = CountsTooMany(io::Cursor::new(noise(1, BYTES)));
    check_role(transferred(reader, Target::writer(Written::default())).await, Role::Sender);
    let target = Target::writer(CountsTooMany(Written::default()));
    let results = transferred(io::Cursor::new(noise(1, BYTES)), target).await;
    check_role(results, Role::Receiver);
}

/// Ends after some bytes, and then goes on.
struct EndsTwice {
    content: io::Cursor<Vec<u8>>,
    end: u64,
    has_ended: bool,
}

impl Read for EndsTwice {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.has_ended && self.content.position() == self.end {
            self.has_ended = true;
            return Ok(0);
        }
        let left = if self.has_ended { u64::MAX } else { self.end - self.content.position() };
        let len = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.content.read(&mut out[..len])
    }
}

#[tokio::test]
async fn a_reader_that_goes_on_after_its_end_has_ended() {
    for end in [0, 1, 262_144, 700_000] {
        let content = io::Cursor::new(noise(1, BYTES));
        let reader = EndsTwice { content, end, has_ended: false };
        let written = Written::default();
        let (sent, received) = transferred(reader, Target::writer(written.clone())).await;
        assert!(sent.is_none() && received.is_none(), "{sent:?} {received:?}");
        assert!(written.bytes() == noise(1, BYTES)[..end as usize], "end at {end}");
    }
}

/// Takes no byte, and does not fail.
struct TakesNothing;

impl Write for TakesNothing {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_writer_that_takes_no_byte_fails() {
    let content = io::Cursor::new(noise(1, BYTES));
    let (sent, received) = transferred(content, Target::writer(TakesNothing)).await;
    for error in [sent.unwrap(), received.unwrap()] {
        assert_eq!(error.kind(), ErrorKind::Stream, "{error}");
    }
}
