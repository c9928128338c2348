//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! ```text
//!  Recovery ── Acked, Lost, Marked ──▶ Controller ── Control ──▶ window, pacing
//!                                          ▲
//!                       ControllerFactory ─┘  once for each path
//! ```
//!
//! [`crate::recovery`] measures, and decides when a recovery episode begins and ends, once for every algorithm alike. It tells
//! a [`Controller`] what each acknowledgement and each batch of losses meant, and asks it for a window, a pacing rate and a
//! send quantum. That costs two virtual calls for each ACK and none for a packet.
//!
//! [`Algorithm`] names the two controllers that are built in. Another one is plugged in by a [`ControllerFactory`] in the
//! configuration of a connection; `examples/own_controller.rs` is a complete one.
//!
//! Invariant of every controller: its [`Control`] has `window >= minimum_window(mtu)` and `pacing_rate > 0`. Recovery raises
//! what is below.

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

pub use crate::measure::{LostPacket, RateSample, Rtt};
