//! The built-in congestion controllers, by name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::bbr::Bbr;
use super::controller::Controller;
use super::cubic::Cubic;
use super::factory::{ControllerFactory, Start};

/// A built-in congestion controller. It is its own [`ControllerFactory`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
    Cubic,
    /// BBRv3 (draft-ietf-ccwg-bbr).
    #[default]
    Bbr,
}

impl ControllerFactory for Algorithm {
    fn name(&self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    fn build(&self, start: &Start) -> Box<dyn Controller> {
        match self {
            Self::Cubic => Box::new(Cubic::new(start.mtu)),
            Self::Bbr => Box::new(Bbr::new(start.now, start.mtu, start.seed)),
        }
    }
}

impl From<Algorithm> for Arc<dyn ControllerFactory> {
    fn from(algorithm: Algorithm) -> Self {
        Arc::new(algorithm)
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        [Self::Cubic, Self::Bbr]
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or(UnknownAlgorithm)
    }
}

/// Error: the name is neither `cubic` nor `bbr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("congestion control is `cubic` or `bbr`")
    }
}

impl std::error::Error for UnknownAlgorithm {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_found_by_its_name() {
        assert_eq!("cubic".parse(), Ok(Algorithm::Cubic));
        assert_eq!("bbr".parse(), Ok(Algorithm::Bbr));
        assert_eq!("reno".parse::<Algorithm>(), Err(UnknownAlgorithm));
    }
}
