//! The events of an offer's codes.
//!
//! Each code lives for itself: a wrong guess or the expiry of one leaves the other as it is. Both
//! share the places of the offer ([`UnfinishedSend::admit`](crate::state::UnfinishedSend::admit)).

use wraith_discovery::{Code, CodeAnnouncement, CodeEvent, PlaceError, PlaceName};

use super::OfferServer;
use crate::error::Error;
use crate::event::Event;
use crate::join_code::{burned, expired};

/// The two codes of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeKind {
    Short,
    Long,
}

impl OfferServer {
    /// Handles an event of a code. Returns an error if it ends the offer.
    pub(super) fn code_event(&mut self, event: CodeEvent, of: CodeKind) -> Option<Error> {
        let publisher = &self.shared.publisher;
        let failure = match event {
            CodeEvent::Used { place, joiner: peer } => {
                publisher.publish(Event::CodeUsed { place, peer });
                self.disconnect_disallowed();
                self.end_full_codes();
                return None;
            }
            CodeEvent::PunchRequest(_, call) => {
                self.paths.punch_for_caller(call.punch_secret, call.reach.addresses());
                return None;
            }
            CodeEvent::Lost(place, why) => {
                publisher.publish(Event::PlaceLost { place, why });
                return None;
            }
            CodeEvent::Back(place) => {
                publisher.publish(Event::PlaceBack(place));
                return None;
            }
            CodeEvent::WrongGuess(place) => {
                publisher.publish(Event::CodeBurned(place.clone()));
                burned(place, &self.receivers_done_text("; no receiver got any file"))
            }
            CodeEvent::Expired => {
                publisher.publish(Event::CodeExpired);
                expired(&self.receivers_done_text(""))
            }
            _ => return None,
        };
        self.code_failed(failure, of)
    }

    /// Handles the end of one code. Returns an error if it ends the offer.
    fn code_failed(&mut self, failure: Error, of: CodeKind) -> Option<Error> {
        // The code stays where it is and sends the reason to late joiners.
        self.ended_codes.push(of);
        let (other, name) = match of {
            CodeKind::Short => (CodeKind::Long, "six words"),
            CodeKind::Long => (CodeKind::Short, "a number and words"),
        };
        if self.is_open(other) {
            let what = format!("{failure}; the code of {name} is still valid");
            self.shared.publisher.publish(Event::Note { path: String::new(), what });
            self.code_failure.get_or_insert(failure);
            return None;
        }
        self.no_code_left(failure)
    }

    /// Returns whether joiners can still use this code, or it is being made.
    fn is_open(&self, kind: CodeKind) -> bool {
        let is_there = match kind {
            CodeKind::Short => self.code.is_some(),
            CodeKind::Long => !self.long_code.is_none(),
        };
        is_there && !self.ended_codes.contains(&kind)
    }

    /// Handles a long code that could not be made. Returns an error if it was the last hope.
    pub(super) fn long_code_not_made(
        &mut self,
        why: Vec<(PlaceName, PlaceError)>,
    ) -> Option<Error> {
        self.shared.publisher.publish(Event::NoLongCode(why));
        let failure = self.code_failure.take().filter(|_| !self.is_open(CodeKind::Short))?;
        self.no_code_left(failure)
    }

    /// Shows the long code, if a receiver can still use it.
    pub(super) fn long_code_made(&mut self, code: Code) {
        match self.unfinished.is_full() {
            true => self.end_full_codes(),
            false => self.shared.publisher.publish(Event::LongCode(code)),
        }
    }

    /// Ends the offer because no further receiver can come, or closes it to new receivers.
    fn no_code_left(&mut self, failure: Error) -> Option<Error> {
        // The first failure is the one that people can do something about.
        let failure = self.code_failure.take().unwrap_or(failure);
        let is_idle = self.receivers().next().is_none() && self.lost.is_none();
        if is_idle {
            return Some(failure);
        }
        if self.is_several() {
            self.shared.publisher.publish(Event::ClosedToNewReceivers(failure.clone()));
        }
        self.closing = Some(failure);
        None
    }

    /// Ends both codes if all places are taken. Late joiners get the reason.
    fn end_full_codes(&mut self) {
        if self.unfinished.is_full() {
            let codes = self.code.iter_mut().chain(self.long_code.announcement_mut());
            codes.for_each(CodeAnnouncement::end_as_used);
        }
    }

    /// Returns the end of the sentence about a code that ended.
    fn receivers_done_text(&self, nobody: &str) -> String {
        match self.sent.receivers {
            0 => nobody.to_owned(),
            1 => " (1 receiver had everything)".to_owned(),
            n => format!(" ({n} receivers had everything)"),
        }
    }
}
