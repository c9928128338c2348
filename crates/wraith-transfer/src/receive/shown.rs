//! The part of an offer that was shown to the user, and that an acceptance therefore covers.
//!
//! An acceptance is valid for the shown sender, for at most the shown numbers of files and bytes,
//! and for the shown top-level names. These are the names in the offer, which arrives before any
//! listing, or else the previewed names. Any other names that a sender lists, on any connection,
//! are skipped.

use std::collections::HashSet;
use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_files::{RelPath, UnsafeName};

use super::preview::Proposal;
use crate::limits::OFFER_NAMES_BYTES_MAX;
use crate::message::Offer;

/// The shown part of an offer; see the module documentation. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    sender: Option<NodeId>,
    offer: Offer,
    names: Option<Arc<Names>>,
}

/// The shown names.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    /// Top-level names.
    top: HashSet<RelPath>,
    /// All names up to this one were shown; `None`: all names were.
    upto: Option<RelPath>,
}

impl Shown {
    /// Covers the numbers of files and bytes and the names of the offer.
    pub fn of(offer: &Offer) -> Self {
        let names = top_level(offer).and_then(Result::ok).map(|top| Names { top, upto: None });
        Self { sender: None, offer: offer.clone(), names: names.map(Arc::new) }
    }

    /// Covers a proposal as presented to the user.
    pub fn of_proposal(proposal: &Proposal<'_>) -> Self {
        let names = proposal.preview.map(|preview| {
            let paths = || preview.entries.iter().map(|previewed| &previewed.entry.path);
            let top = paths().filter(|path| path.depth() == 1).cloned().collect();
            // In an incomplete list, the last name marks how far it was read.
            let upto = paths().next_back().filter(|_| !preview.complete).cloned();
            (preview.complete || upto.is_some()).then(|| Arc::new(Names { top, upto }))
        });
        let said = Self::of(proposal.offer);
        Self { sender: Some(proposal.sender), names: said.names.or(names.flatten()), ..said }
    }

    /// Returns true if an acceptance of the shown offer also covers this offer of this sender: it
    /// is not larger and not of another type.
    pub fn covers(&self, sender: NodeId, offer: &Offer) -> bool {
        let counts =
            |offer: &Offer| [offer.files, offer.dirs, offer.links, offer.bytes, offer.largest];
        let shown = &self.offer;
        // The length of a byte stream is not known in advance; its offer always states 0.
        self.sender.is_none_or(|shown| shown == sender)
            && offer.stream == shown.stream
            && offer.name == shown.name
            && counts(offer).iter().zip(counts(shown)).all(|(now, then)| *now <= then)
            && match (&offer.names, &shown.names) {
                (Some(now), Some(then)) => now.iter().all(|name| then.contains(name)),
                _ => true,
            }
    }

    /// Returns true if the top-level name `path` was shown, as far as names were.
    pub(crate) fn covers_name(&self, path: &RelPath) -> bool {
        let Some(names) = &self.names else { return true };
        names.top.contains(path) || names.upto.as_ref().is_some_and(|upto| path > upto)
    }
}

/// Returns the top-level names in an offer, if it has any. An error if they are not valid names.
pub(super) fn top_level(offer: &Offer) -> Option<Result<HashSet<RelPath>, UnsafeName>> {
    let names = offer.names.as_ref()?.iter();
    Some(names.map(|name| RelPath::parse(name)).collect())
}

/// Returns true if an offer's top-level names are valid.
pub(super) fn is_sane(offer: &Offer) -> bool {
    let bytes: usize = offer.names.iter().flatten().map(|name| name.len()).sum();
    let is_top = |names: HashSet<RelPath>| names.iter().all(|name| name.depth() == 1);
    bytes <= OFFER_NAMES_BYTES_MAX && top_level(offer).is_none_or(|names| names.is_ok_and(is_top))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> RelPath {
        RelPath::parse(path.as_bytes()).unwrap()
    }

    fn shown(upto: Option<&str>) -> Shown {
        let names = Names { top: ["b", "m"].map(path).into(), upto: upto.map(path) };
        let offer = Offer { name: "b".into(), files: 9, bytes: 100, ..Offer::default() };
        Shown { sender: Some(NodeId([1; 32])), offer, names: Some(Arc::new(names)) }
    }

    #[test]
    fn names_beside_those_that_were_shown_are_not_covered() {
        let whole = shown(None);
        assert!(whole.covers_name(&path("b")) && whole.covers_name(&path("m")));
        assert!(!whole.covers_name(&path("a")) && !whole.covers_name(&path("z")));
        // In a list that was not read to its end, later names were not shown, and the user was
        // informed of that.
        let part = shown(Some("m/5"));
        assert!(!part.covers_name(&path("c")) && part.covers_name(&path("z")));
        assert!(Shown::of(&Offer::default()).covers_name(&path("a")));
    }

    #[test]
    fn a_larger_offer_or_another_senders_is_not_covered() {
        let (shown, sender) = (shown(None), NodeId([1; 32]));
        let same = shown.offer.clone();
        assert!(shown.covers(sender, &same));
        assert!(shown.covers(sender, &Offer { files: 8, ..same.clone() }));
        assert!(!shown.covers(NodeId([2; 32]), &same));
        for more in [
            Offer { files: 10, ..same.clone() },
            Offer { bytes: 101, ..same.clone() },
            Offer { links: 1, ..same.clone() },
            Offer { name: "c".into(), ..same.clone() },
            Offer { stream: Some(true), ..same.clone() },
        ] {
            assert!(!shown.covers(sender, &more), "{more:?}");
        }
        let named = |names: &[&str]| {
            let names = names.iter().map(|name| name.as_bytes().to_vec().into()).collect();
            Offer { names: Some(names), ..same.clone() }
        };
        let shown = Shown::of(&named(&["b", "m"]));
        assert!(shown.covers(sender, &named(&["m"])) && shown.covers(sender, &same));
        assert!(!shown.covers(sender, &named(&["m", "z"])));
        // However slowly the sender lists, nothing else is covered.
        assert!(shown.covers_name(&path("m")) && !shown.covers_name(&path("z")));
    }
}
