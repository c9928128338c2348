//! The arguments of `wraith speed`.

use clap::Args;
use wraith_command_text::durations;
use wraith_command_text::units::plain_bytes;

/// Maximum text length in bytes.
const TEXT_MAX: u32 = 16 << 20;

#[derive(Args, Clone, Debug)]
pub struct SpeedArgs {
    /// Only the operation with this name ("ML-KEM-768 encaps"), else the operations of this
    /// algorithm ("sha256"), else those with this text in their name ("verify"); by default all
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// Bytes of the text, for operations that process one; several, separated by commas, for
    /// several rows
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "8192", value_parser = text_bytes)]
    pub bytes: Vec<u32>,

    /// Measuring time of each row; a number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    pub seconds: f64,

    /// List the operations and their measured scope, without measuring
    #[arg(short, long)]
    pub list: bool,
}

fn text_bytes(text: &str) -> Result<u32, String> {
    match u32::try_from(plain_bytes(text)?) {
        Ok(bytes) if (1..=TEXT_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("expected a number of bytes from 1 to {TEXT_MAX}")),
    }
}

/// Parses a measuring time: a millisecond to an hour.
fn seconds(text: &str) -> Result<f64, String> {
    match durations::duration(text)?.as_secs_f64() {
        seconds if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a time from 1ms to 1h".to_owned()),
    }
}
