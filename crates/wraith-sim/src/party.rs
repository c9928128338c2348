//! The program at one side of a simulated connection.
//!
//! Invariant: a party is driven by events and by the simulated time alone, so a seed repeats a run.

use std::fmt::Debug;

use wraith_core::{Connection, Event, Role, Time};

/// One side of a connection: the program that uses it. It is driven by events only.
pub trait Party: Debug {
    /// What the two sides of a connection do.
    type Plan: Clone + Debug;

    /// Creates one side of `plan`, before the handshake. Both sides get the same `seed`.
    fn new(role: Role, seed: u64, plan: Self::Plan) -> Self;

    /// Records an event; [`Self::drive`] acts on it.
    fn on_event(&mut self, now: Time, connection: &mut Connection, event: Event);

    /// Opens, writes and reads as far as possible now.
    fn drive(&mut self, now: Time, connection: &mut Connection);

    /// Returns whether there is work without an event.
    fn wants_driving(&self, now: Time) -> bool;

    /// Returns the time at which the party wants to be driven without an event.
    fn wake(&self) -> Option<Time>;
}
