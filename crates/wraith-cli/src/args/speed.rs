//! The arguments of `wraith speed`.

use clap::Args;

use super::units::plain_bytes;

/// Bytes of the longest text.
const TEXT_MAX: u32 = 16 << 20;

#[derive(Args, Clone, Debug)]
pub struct SpeedArgs {
    /// Only the operation of this name ("ML-KEM-768 encaps"), or else those of the algorithm ("sha256"), or else those with it in their name ("verify"); all without
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// Bytes of a text, where the operation is about one; several, with commas between, for several rows
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "8192", value_parser = text_bytes)]
    pub bytes: Vec<u32>,

    /// Seconds of each row
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub seconds: f64,

    /// Name the operations and what is measured of each, and measure nothing
    #[arg(short, long)]
    pub list: bool,
}

fn text_bytes(text: &str) -> Result<u32, String> {
    match u32::try_from(plain_bytes(text)?) {
        Ok(bytes) if (1..=TEXT_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("a number of bytes from 1 to {TEXT_MAX}")),
    }
}

/// A time to measure: a millisecond to an hour.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.001 to 3600".to_owned()),
    }
}
