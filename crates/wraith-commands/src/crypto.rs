//! Runs the commands of the crate `wraith-crypto-commands`, and prints their results.

use std::sync::Arc;

use crate::args::{CryptoArgs, SpeedArgs};
use crate::failure::{Exit, Failure, plain};
use crate::output::Reporter;
use crate::signals::{Signals, blocking};

/// Runs `wraith crypto` on a thread of its own. A signal stops it and removes its partial output.
pub async fn run(args: &CryptoArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let signals = Signals::catch(|| ()).map_err(|error| {
        Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
    })?;
    let (args, its_reporter) = (args.clone(), Arc::clone(reporter));
    let work = blocking(move || wraith_crypto_commands::crypto::run(&args, &*its_reporter));
    let result = signals.or(async { Ok(work.await?) }).await;
    if result.is_err() {
        wraith_crypto_commands::crypto::abandon();
    }
    result
}

/// Runs `wraith speed`.
pub fn speed(args: &SpeedArgs, reporter: &Reporter) -> Result<(), Failure> {
    Ok(wraith_crypto_commands::speed::run(args, reporter)?)
}

impl From<wraith_crypto_commands::Failure> for Failure {
    fn from(failure: wraith_crypto_commands::Failure) -> Self {
        use wraith_crypto_commands::Exit as Kind;
        let exit = match failure.exit {
            Kind::Other => Exit::Other,
            Kind::Usage => Exit::Usage,
            Kind::Disk => Exit::Disk,
            Kind::Verification => Exit::Verification,
            Kind::Partial => Exit::Partial,
        };
        Self { exit, message: failure.message, hint: failure.hint }
    }
}

/// Each method calls the method of the same name of the type.
impl wraith_crypto_commands::Reporter for Reporter {
    fn event(&self, event: &wraith_crypto_commands::Event<'_>) {
        self.write_event(None, event, true);
    }

    fn print(&self, line: &[u8]) {
        self.print(line);
    }

    fn status(&self, line: &str) {
        self.status(line);
    }

    fn note(&self, message: &str) {
        self.note("", message);
    }

    fn unreadable(&self, path: &str, message: &str) {
        self.unreadable(path, message);
    }

    fn keep_off_stdout(&self) {
        self.keep_off_stdout();
    }
}
