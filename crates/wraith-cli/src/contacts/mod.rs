//! The user interface of contacts: the command, and the question after a transfer.

mod command;
mod keep;

pub use command::{nobody, run};
pub use keep::{Keep, Other, after_transfer};
