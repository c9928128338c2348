//! Sizes and rates: parsing and display.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, written `4096`, `64K`, `256M`, `1G`, `2T` (powers of 1024) or `1MB`, `1GB`
/// (powers of 1000). Fractions are allowed: `1.5G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// Maximum number of digits behind the decimal point.
const DECIMALS_MAX: usize = 9;

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 1,
            "K" | "KIB" => 1 << 10,
            "M" | "MIB" => 1 << 20,
            "G" | "GIB" => 1 << 30,
            "T" | "TIB" => 1 << 40,
            "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            _ => return Err(format!("unknown unit \"{unit}\": use K, M, G, T or KB, MB, GB, TB")),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let is_number = !(part.contains('.') || whole.is_empty() && part.is_empty());
        if !is_number || number.ends_with('.') {
            return Err("a size must begin with a number".to_owned());
        }
        if part.len() > DECIMALS_MAX {
            return Err(format!("more than {DECIMALS_MAX} decimal places"));
        }
        let too_large = || "too large".to_owned();
        let digits = if whole.is_empty() { "0" } else { whole };
        let whole: u64 = digits.parse().map_err(|_| too_large())?;
        let ten = 10u128.pow(part.len() as u32);
        let part: u128 = if part.is_empty() { 0 } else { part.parse().map_err(|_| too_large())? };
        let bytes = u128::from(whole) * u128::from(factor) + part * u128::from(factor) / ten;
        u64::try_from(bytes).map(Self).map_err(|_| too_large())
    }
}

/// Parses a number of bytes in digits alone, where a unit would be ambiguous: `1024`. If the text
/// is a [`Size`], the error suggests its value in digits.
pub fn plain_bytes(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| match text.parse::<Size>() {
        Ok(Size(bytes)) => format!("expected a number of bytes in digits: {bytes}"),
        Err(_) => "expected a number of bytes in digits".to_owned(),
    })
}

/// A number of bytes per second, written as a [`Size`], with or without `/s`; at least 1 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub bytes: u64,
    /// The text as typed.
    text: String,
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix("/s").unwrap_or(text).parse::<Size>()? {
            Size(bytes) if bytes >= 1024 => Ok(Self { bytes, text: text.to_owned() }),
            Size(_) => Err("the minimum rate is 1K a second".to_owned()),
        }
    }
}

/// Displays bytes in decimal units with three significant digits: `999 B`, `1.02 kB`, `245 MB`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        // 999.5 rounds up to the next unit, never to "1000 kB".
        while value >= 999.5 && unit + 1 < UNITS.len() {
            value /= 1000.0;
            unit += 1;
        }
        let decimals = match (unit, value) {
            (0, _) => 0,
            (_, v) if v < 9.995 => 2,
            (_, v) if v < 99.95 => 1,
            _ => 0,
        };
        write!(f, "{value:.decimals$} {}", UNITS[unit])
    }
}

/// Displays seconds as `7 s`, `3:05`, `2:00:09`.
#[derive(Clone, Copy, Debug)]
pub struct Clock(pub u64);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        match (hours, minutes) {
            (0, 0) => write!(f, "{seconds} s"),
            (0, _) => write!(f, "{minutes}:{seconds:02}"),
            _ => write!(f, "{hours}:{minutes:02}:{seconds:02}"),
        }
    }
}

/// Displays a number of files: `1 file`, `20000 files`.
#[derive(Clone, Copy, Debug)]
pub struct Files(pub u64);

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} file{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bytes_per_second() {
        let rate = |text: &str| text.parse::<RateLimit>().map(|rate| rate.bytes).ok();
        assert_eq!(rate("50M"), Some(50 << 20));
        assert_eq!(rate("1MB/s"), Some(1_000_000));
        for wrong in ["0", "100", "50Mbit", "/s", ""] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read_as_they_are_written() {
        let size = |text: &str| text.parse::<Size>().map(|s| s.0);
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("1g"), Ok(1 << 30));
        assert_eq!(size("1GB"), Ok(1_000_000_000));
        assert_eq!((size("1.5G"), size(".5M")), (Ok(3 << 29), Ok(1 << 19)));
        assert_eq!(size("0.1MB"), Ok(100_000));
        for large in ["99999999999999999999", "99999999999T", "16777216T"] {
            assert_eq!(size(large), Err("too large".into()));
        }
        for wrong in ["", "M", "1X", "-1", "1.G", ".", ".G", "1.2.3M", "1.0123456789G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_byte_option_with_a_unit_suggests_digits() {
        assert_eq!(plain_bytes("1024"), Ok(1024));
        assert!(plain_bytes("1k").unwrap_err().ends_with("in digits: 1024"));
        for wrong in ["", "k", "-1", "99999999999999999999", "1 000"] {
            assert!(plain_bytes(wrong).unwrap_err().ends_with("in digits"), "{wrong}");
        }
    }

    #[test]
    fn bytes_have_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_499, "999 kB"),
            (999_999, "1.00 MB"),
            (245_000_000, "245 MB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn clocks_grow_by_the_hour() {
        assert_eq!(Clock(7).to_string(), "7 s");
        assert_eq!(Clock(185).to_string(), "3:05");
        assert_eq!(Clock(7209).to_string(), "2:00:09");
    }
}
