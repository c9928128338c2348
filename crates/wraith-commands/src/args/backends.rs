//! The option that selects implementations of the cryptography.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wraith_crypto::Backends;

use super::headings::SPEED;

/// The implementations of the cryptography.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = SPEED)]
pub struct BackendArgs {
    /// Implementations of the cryptography: conservative for libraries and none of wraith's vector
    /// code, fast for that vector code on keys too [default: vector code for packets, hashes and
    /// bulk encryption, libraries for keys]
    #[arg(long, value_name = "NAME", env = "WRAITH_BACKENDS", value_parser = backends(), global = true)]
    pub backends: Option<Backends>,
}

/// Parses backends by their name.
fn backends() -> impl TypedValueParser<Value = Backends> {
    let names = PossibleValuesParser::new(Backends::ALL.map(Backends::name));
    names.map(|name| name.parse().expect("the name is one of the possible values"))
}
