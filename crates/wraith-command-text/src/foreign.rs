//! Options of other programs, which users try in a command of wraith.

/// An option of other programs that a command does not have.
#[derive(Clone, Copy, Debug)]
pub struct ForeignOption {
    /// The names of the option, with their hyphens.
    pub names: &'static [&'static str],
    /// The commands where users try it, by their words after `wraith`.
    pub at: &'static [&'static str],
    /// The reason why it does not exist.
    pub why: &'static str,
    /// The replacement, or other advice.
    pub instead: &'static str,
}

/// Advice for an option that needs no replacement.
pub const LEFT_OUT: &str = "leave the option out";

/// Builds an entry of a table of such options.
pub const fn option(
    names: &'static [&'static str],
    at: &'static [&'static str],
    why: &'static str,
    instead: &'static str,
) -> ForeignOption {
    ForeignOption { names, at, why, instead }
}
