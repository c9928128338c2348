//! The contenders.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use wraith_core::Algorithm;

use crate::host::{Content, Host, WINDOW_BYTES};
use crate::quinn::{self, Control};
use crate::wraith;

/// Smaller windows for quinn, tried in turn if it gives up with large ones. quinn ends a connection
/// whose receiver would have to track more than about a thousand gaps. With large windows, a loss
/// of a few percent makes more gaps than that.
const QUINN_SMALLER_WINDOWS_BYTES: [u64; 2] = [16 << 20, 4 << 20];

/// A transport with its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// wraith's core.
    Wraith(Algorithm),
    /// quinn-proto.
    Quinn(Control),
}

/// Sender and receiver of a flow.
pub type Pair = (Box<dyn Host>, Box<dyn Host>);

impl Contender {
    /// All contenders.
    pub const ALL: [Self; 4] = [
        Self::Wraith(Algorithm::Cubic),
        Self::Quinn(Control::Cubic),
        Self::Quinn(Control::Bbr),
        Self::Wraith(Algorithm::Bbr),
    ];

    /// wraith with its default congestion control.
    pub fn default_wraith() -> Self {
        Self::Wraith(Algorithm::default())
    }

    /// Returns whether this transport is a baseline.
    pub fn is_baseline(self) -> bool {
        matches!(self, Self::Quinn(_))
    }

    /// Windows to try in turn, until a run does not end because the transport gave up.
    pub fn windows(self) -> &'static [u64] {
        match self {
            Self::Wraith(_) => &[WINDOW_BYTES],
            Self::Quinn(_) => {
                &[WINDOW_BYTES, QUINN_SMALLER_WINDOWS_BYTES[0], QUINN_SMALLER_WINDOWS_BYTES[1]]
            }
        }
    }

    /// Both ends of a flow.
    pub fn pair(
        self,
        windows: u64,
        seed: u64,
        flow: u64,
        addresses: (SocketAddr, SocketAddr),
        content: Content,
    ) -> Pair {
        match self {
            Self::Wraith(algorithm) => {
                let (sender, receiver) =
                    wraith::pair(algorithm, windows, seed, flow, addresses, content);
                (Box::new(sender), Box::new(receiver))
            }
            Self::Quinn(control) => {
                let (sender, receiver) =
                    quinn::pair(control, windows, seed, flow, addresses, content);
                (Box::new(sender), Box::new(receiver))
            }
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transport, control) = match self {
            Self::Wraith(algorithm) => ("wraith", format!("{algorithm:?}")),
            Self::Quinn(control) => ("quinn", format!("{control:?}")),
        };
        write!(f, "{transport}-{}", control.to_lowercase())
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
