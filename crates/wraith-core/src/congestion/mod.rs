//! Congestion control: the window (bytes in flight) and the pacing rate.
//!
//! ```text
//!  Recovery ── Acked, Lost, Marked ──▶ Controller ── Control ──▶ window, pacing
//!                                          ▲
//!                       ControllerFactory ─┘  once for each path
//! ```
//!
//! [`crate::recovery`] measures the path, and decides when a recovery episode begins and ends, in
//! the same way for every algorithm. It reports each acknowledgement and each batch of losses to a
//! [`Controller`], and requests a window, a pacing rate and a send quantum. That costs two virtual
//! calls per ACK and none per packet.
//!
//! [`Algorithm`] names the two built-in controllers. A [`ControllerFactory`] in the configuration
//! of a connection plugs in another one; `examples/own_controller.rs` is a complete example.
//!
//! Invariant of every controller: its [`Control`] has `window >= minimum_window(mtu)` and
//! `pacing_rate > 0`. Recovery raises smaller values.

mod algorithm;
mod bbr;
mod controller;
mod cubic;
mod factory;
mod hystart;
mod window;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use bbr::Bbr;
pub use controller::{Acked, Control, Controller, Lost, Marked, Metrics};
pub use cubic::Cubic;
pub use factory::{ControllerFactory, Start};
pub use window::{WINDOW_BYTES_MAX, initial_window, minimum_window, send_quantum};

/// The clock of the calls to a [`Controller`].
pub use crate::Time;
pub use crate::measure::{LostPacket, RateSample, Rtt};
