//! Proxies from the arguments and the environment.

use wraith::Proxies;

use crate::args::MeetingArgs;
use crate::failure::{Exit, Failure};

/// Value of `--proxy` that turns proxies off and overrides the environment.
const OFF: &str = "off";

/// Returns the proxies that the arguments name, or else the environment.
///
/// # Errors
/// A value is no proxy URL. The message does not repeat it, because it may contain a password.
pub fn proxies(args: &MeetingArgs) -> Result<Proxies, Failure> {
    match args.proxy.as_deref().map(str::trim).filter(|url| !url.is_empty()) {
        Some(OFF) => Ok(Proxies::none()),
        Some(url) => Proxies::one(url).map_err(|error| {
            let failure =
                Failure::new(Exit::Usage, format!("--proxy is not a valid proxy: {error}"));
            failure.hint("use --proxy socks5://HOST:PORT, http://HOST:PORT, or off")
        }),
        None => Proxies::of_environment().map_err(|(variable, error)| {
            let failure =
                Failure::new(Exit::Usage, format!("{variable} is not a valid proxy: {error}"));
            failure.hint("correct the variable, or turn proxies off with --proxy off")
        }),
    }
}
