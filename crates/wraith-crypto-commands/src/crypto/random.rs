//! `wraith crypto rand`.

use data_encoding::HEXLOWER;
use wraith_suite::rand;
use zeroize::Zeroizing;

use super::args::RandArgs;
use super::output::{Output, Readers};
use crate::failure::Failure;
use crate::report::Reporter;

/// Number of bytes generated at once.
const BUFFER_BYTES: usize = 1 << 16;

pub fn run(args: &RandArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let mut output = Output::open(&args.out, Readers::Owner, args.hex, reporter)?;
    let mut left = args.bytes;
    let mut buffer = Zeroizing::new(vec![0; BUFFER_BYTES]);
    while left > 0 && !output.is_gone() {
        let n = left.min(BUFFER_BYTES as u64) as usize;
        rand::fill(&mut buffer[..n]);
        match args.hex {
            true => output.write(Zeroizing::new(HEXLOWER.encode(&buffer[..n])).as_bytes())?,
            false => output.write(&buffer[..n])?,
        }
        left -= n as u64;
    }
    if args.hex {
        output.write(b"\n")?;
    }
    output.finish("random", None, reporter)
}
