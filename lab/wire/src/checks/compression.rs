//! Whether a compressor finds redundancy: deflate, whose window of 32 KiB covers neighbouring
//! datagrams.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::CheckFigure;
use crate::finding::Figure;

/// Compressor of all datagrams in sequence.
#[derive(Debug)]
pub struct Compressed {
    bytes: u64,
    encoder: DeflateEncoder<Count>,
}

#[derive(Debug, Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Default for Compressed {
    fn default() -> Self {
        Self { bytes: 0, encoder: DeflateEncoder::new(Count::default(), Compression::fast()) }
    }
}

impl Compressed {
    /// Adds a datagram.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.encoder.write_all(bytes).expect("counting does not fail");
    }

    /// Bytes in, and bytes out.
    pub fn finish(self) -> (u64, u64) {
        (self.bytes, self.encoder.finish().expect("counting does not fail").0)
    }
}

/// Checks that the data did not become smaller.
pub fn figures((bytes, compressed): (u64, u64)) -> Vec<CheckFigure> {
    let value = bytes as f64 / compressed as f64;
    vec![CheckFigure::new("compression", "all bytes", Figure::AtMost { value, limit: 1.0 })]
}
