//! Instruction counts of operations on secrets: one operation runs once for each of several secrets,
//! and every run has to execute the same number of instructions.
//!
//! - [`operations`]: the operations, by name, and the reasons why some are excluded.
//! - [`secrets`]: the secrets that an operation runs with.
//! - [`leaks`]: operations that leak on purpose. Each must be found.
//! - [`process`]: one run in a process of its own, and its counter.
//!
//! The program `wraith-count` runs this under valgrind, and alone with single steps. `cargo xtask ct`
//! compares the counts.

pub mod leaks;
pub mod operations;
pub mod process;
pub mod secrets;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use secrets::{Draw, Secret};

/// An operation on the bytes of a secret.
type Run = Box<dyn Fn(&[u8])>;

/// An operation that is ready to run with each of its secrets.
pub struct Prepared {
    /// The secrets, all of one length.
    pub secrets: Vec<Secret>,
    /// The preparation with the bytes of a secret, which is not counted.
    pub before: Option<Run>,
    /// Runs the operation with the bytes of a secret.
    pub run: Run,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

/// Sets up an operation. Returns `None` if the processor or the backends do not have it.
type Prepare = Box<dyn Fn(&mut Draw) -> Option<Prepared>>;

/// The expected result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// All secrets give the same count, and in single steps the same path.
    Same,
    /// The counts may differ, for this reason.
    Excluded(&'static str),
    /// A leak on purpose: the counts differ.
    CountLeak,
    /// A leak on purpose: the path differs, and the count does not.
    PathLeak,
}

/// Which runs include an operation. Another one runs the same code in a shorter time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// All.
    Short,
    /// The full form.
    Long,
    /// Those that name it.
    Endless,
}

impl Length {
    /// Returns [`Self::Long`] or [`Self::Short`].
    pub const fn long_if(is_long: bool) -> Self {
        if is_long { Self::Long } else { Self::Short }
    }
}

/// An operation on secrets.
pub struct Operation {
    /// KIND/ALGORITHM/FUNCTION.
    pub name: String,
    /// The expected result.
    pub expectation: Expectation,
    /// Which runs include it.
    pub length: Length,
    prepare: Prepare,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Operation {
    /// Creates an operation that has to be the same for all secrets.
    pub fn new(
        name: impl Into<String>,
        prepare: impl Fn(&mut Draw) -> Option<Prepared> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            expectation: Expectation::Same,
            length: Length::Short,
            prepare: Box::new(prepare),
        }
    }

    /// Sets the runs that include the operation.
    #[must_use]
    pub fn of_length(mut self, length: Length) -> Self {
        self.length = length;
        self
    }

    /// Sets the expectation.
    #[must_use]
    pub fn expecting(mut self, expectation: Expectation) -> Self {
        self.expectation = expectation;
        self
    }

    /// Sets up the operation.
    ///
    /// # Panics
    /// If its secrets differ in length, or if there is only one.
    pub fn prepare(&self, draw: &mut Draw) -> Option<Prepared> {
        let prepared = (self.prepare)(draw)?;
        let len = prepared.secrets[0].bytes.len();
        let is_uniform = prepared.secrets.iter().all(|secret| secret.bytes.len() == len);
        assert!(is_uniform && prepared.secrets.len() > 1, "{}: no two equal lengths", self.name);
        Some(prepared)
    }
}

/// Returns secrets together with what runs on them.
pub fn prepared(secrets: Vec<Secret>, run: impl Fn(&[u8]) + 'static) -> Option<Prepared> {
    Some(Prepared { secrets, before: None, run: Box::new(run) })
}

/// Returns secrets, the function that makes a key of each, and the operation with that key. All keys
/// are at one address.
pub fn prepared_keys<K: 'static>(
    secrets: Vec<Secret>,
    key: impl Fn(&[u8]) -> K + 'static,
    run: impl Fn(&K) + 'static,
) -> Option<Prepared> {
    let place = Rc::new(RefCell::new(None));
    let kept = Rc::clone(&place);
    let before: Run = Box::new(move |bytes| *kept.borrow_mut() = Some(key(bytes)));
    let run: Run = Box::new(move |_| run(place.borrow().as_ref().expect("the key was made")));
    Some(Prepared { secrets, before: Some(before), run })
}

/// Returns all operations, and the leaks.
pub fn all() -> Vec<Operation> {
    let mut all = operations::all();
    all.extend(leaks::all());
    all
}
