//! Middleboxes that change the ECN codepoint.

use wraith_core::{Ecn, Time};

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Changes the codepoint of every datagram, or drops datagrams with a codepoint.
#[derive(Clone, Copy, Debug)]
pub struct EcnMangle(Mangle);

#[derive(Clone, Copy, Debug)]
enum Mangle {
    To(Option<Ecn>),
    Hide,
    Drop,
}

impl EcnMangle {
    /// Clears it, as old routers do that rewrite the whole byte.
    pub fn bleach() -> Self {
        Self(Mangle::To(None))
    }
    /// Turns every codepoint into ECT(1).
    pub fn to_ect1() -> Self {
        Self(Mangle::To(Some(Ecn::Ect1)))
    }
    /// Turns every codepoint into CE.
    pub fn to_ce() -> Self {
        Self(Mangle::To(Some(Ecn::Ce)))
    }
    /// Turns CE into ECT(0). Behind a marking queue, this looks like a receiver that denies marks.
    pub fn hide_marks() -> Self {
        Self(Mangle::Hide)
    }
    /// Drops every datagram with a codepoint.
    pub fn drop() -> Self {
        Self(Mangle::Drop)
    }
}

impl Hop for EcnMangle {
    fn pass(&mut self, now: Time, mut datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        if datagram.ecn.is_some() {
            match self.0 {
                Mangle::To(codepoint) => datagram.ecn = codepoint,
                Mangle::Hide => datagram.ecn = Some(Ecn::Ect0),
                Mangle::Drop => return,
            }
        }
        out.push((now, datagram));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Path;
    use super::super::tests::{datagram, micros};
    use super::*;
    use crate::hops;

    /// Returns the results for a datagram without a codepoint, one with ECT(0) and one with CE.
    fn passed(mangle: EcnMangle) -> Vec<Option<Ecn>> {
        let mut path = Path::new(1, hops![mangle]);
        for (i, ecn) in [None, Some(Ecn::Ect0), Some(Ecn::Ce)].into_iter().enumerate() {
            path.push(micros(1), Datagram { ecn, ..datagram(i as u32, 100) });
        }
        std::iter::from_fn(|| path.pop(micros(1))).map(|datagram| datagram.ecn).collect()
    }

    #[test]
    fn ecn_codepoints_are_changed_and_unmarked_datagrams_pass() {
        let (ect0, ect1, ce) = (Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce));
        assert_eq!(passed(EcnMangle::bleach()), [None, None, None]);
        assert_eq!(passed(EcnMangle::to_ect1()), [None, ect1, ect1]);
        assert_eq!(passed(EcnMangle::to_ce()), [None, ce, ce]);
        assert_eq!(passed(EcnMangle::hide_marks()), [None, ect0, ect0]);
        assert_eq!(passed(EcnMangle::drop()), [None]);
    }
}
