//! Who competes.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use wraith_core::Algorithm;

use crate::host::{Content, Host};
use crate::wraith;

/// A transport with its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// wraith's core.
    Wraith(Algorithm),
}

/// Sender and receiver of a flow.
pub type Pair = (Box<dyn Host>, Box<dyn Host>);

impl Contender {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Wraith(Algorithm::Cubic)];

    /// wraith as users get it.
    pub fn default_wraith() -> Self {
        Self::Wraith(Algorithm::default())
    }

    /// Both ends of a flow.
    pub fn pair(
        self,
        seed: u64,
        flow: u64,
        addresses: (SocketAddr, SocketAddr),
        content: Content,
    ) -> Pair {
        match self {
            Self::Wraith(algorithm) => {
                let (sender, receiver) = wraith::pair(algorithm, seed, flow, addresses, content);
                (Box::new(sender), Box::new(receiver))
            }
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wraith(algorithm) => {
                write!(f, "wraith-{}", format!("{algorithm:?}").to_lowercase())
            }
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|contender| contender.to_string() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|contender| contender.to_string()).join(", ");
            format!("there is {names}")
        })
    }
}
