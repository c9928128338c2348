//! Behaviour of transfers over real connections on loopback, one module per area.

mod common;
mod durability;

mod cancel;
mod deleted_at_sender;
mod hostile_receiver;
mod hostile_sender;
mod kill;
mod migration;
mod parallel;
mod pushes;
mod receipts;
mod resume;
mod round_trips;
mod sender_dials;
mod sparse;
mod tampered_part;
mod trace;
mod transfer;
