//! Asking a person at the terminal: a code with its words completed, or a question that may be taken back.

mod answers;
mod code_line;

pub use answers::Answers;
pub use code_line::{Line, read};
