//! What was shown of an offer, and so what a yes to it is a yes to.
//!
//! A yes holds for the sender that was named, for no more files and bytes than were shown, and for the top-level names that were
//! shown: those of the offer, which says them before anything is listed, or else those that were looked at. What a sender
//! lists beside those, on whatever connection, is left out.

use std::collections::HashSet;
use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_files::{RelPath, UnsafeName};

use super::preview::Proposal;
use crate::limits::OFFER_NAMES_BYTES_MAX;
use crate::message::Offer;

/// See the module. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    sender: Option<NodeId>,
    offer: Offer,
    names: Option<Arc<Names>>,
}

/// The names that were looked at.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    /// Those of one component.
    top: HashSet<RelPath>,
    /// All names up to this one were shown; `None`: all there are.
    upto: Option<RelPath>,
}

impl Shown {
    /// Figures, and the names that the offer says.
    pub fn of(offer: &Offer) -> Self {
        let names = top_level(offer).and_then(Result::ok).map(|top| Names { top, upto: None });
        Self { sender: None, offer: offer.clone(), names: names.map(Arc::new) }
    }

    /// What was put to whoever decides.
    pub fn of_proposal(proposal: &Proposal<'_>) -> Self {
        let names = proposal.preview.map(|preview| {
            let paths = || preview.entries.iter().map(|previewed| &previewed.entry.path);
            let top = paths().filter(|path| path.depth() == 1).cloned().collect();
            // Of a list without an end the last name says how far it was read.
            let upto = paths().next_back().filter(|_| !preview.complete).cloned();
            (preview.complete || upto.is_some()).then(|| Arc::new(Names { top, upto }))
        });
        let said = Self::of(proposal.offer);
        Self { sender: Some(proposal.sender), names: said.names.or(names.flatten()), ..said }
    }

    /// Whether an answer to what was shown is one to this offer of this sender too: it is no more, and nothing of another kind.
    pub fn covers(&self, sender: NodeId, offer: &Offer) -> bool {
        let counts =
            |offer: &Offer| [offer.files, offer.dirs, offer.links, offer.bytes, offer.largest];
        let shown = &self.offer;
        // The length of a stream is not known beforehand, and its offer says 0 each time.
        self.sender.is_none_or(|shown| shown == sender)
            && offer.stream == shown.stream
            && offer.name == shown.name
            && counts(offer).iter().zip(counts(shown)).all(|(now, then)| *now <= then)
            && match (&offer.names, &shown.names) {
                (Some(now), Some(then)) => now.iter().all(|name| then.contains(name)),
                _ => true,
            }
    }

    /// Whether the top-level name `path` was shown, as far as names were.
    pub(crate) fn covers_name(&self, path: &RelPath) -> bool {
        let Some(names) = &self.names else { return true };
        names.top.contains(path) || names.upto.as_ref().is_some_and(|upto| path > upto)
    }
}

/// The top-level names that an offer says, if it says any. An error if there can be no such names.
pub(super) fn top_level(offer: &Offer) -> Option<Result<HashSet<RelPath>, UnsafeName>> {
    let names = offer.names.as_ref()?.iter();
    Some(names.map(|name| RelPath::parse(name)).collect())
}

/// Whether an offer's top-level names can be some.
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
        // Of a list that was not read to its end, what comes behind was not shown, and its user was told.
        let part = shown(Some("m/5"));
        assert!(!part.covers_name(&path("c")) && part.covers_name(&path("z")));
        assert!(Shown::of(&Offer::default()).covers_name(&path("a")));
    }

    #[test]
    fn an_offer_of_more_or_of_somebody_else_is_not_covered() {
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
