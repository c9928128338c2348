//! The hot paths of wraith on fixed inputs, for `cargo lab guard`, which runs this program under
//! callgrind.
//!
//! `wraith-guard list` names the paths, `wraith-guard cpu` prints the processor features by which
//! the libraries choose their code, and `wraith-guard run PATH TIMES` repeats one path.
//!
//! The work before the repetitions does not depend on TIMES, so the difference of two runs is the
//! exact cost of the repetitions: one thread, a simulated clock, fixed seeds. Each path checks its
//! own result, because a path that does no work would look fast.
#![forbid(unsafe_code)]

mod connection;
mod files;
mod packets;
mod recovery;
mod streams;

use std::process::ExitCode;

/// Repetitions in the shorter of the two runs; the longer has twice as many. Both runs prepare the
/// input of the longer one.
const LEAST: u64 = 8;
const MOST: u64 = 2 * LEAST;

/// Packets in one repetition of a path that is counted by the packet: one GSO batch.
const BATCH: u64 = 64;
/// UDP payload of a full packet on a 1500-byte link.
const DATAGRAM_BYTES: usize = 1452;

/// A guarded path.
struct Path {
    name: &'static str,
    /// Name of one unit.
    unit: &'static str,
    /// Units in one repetition.
    units: u64,
    /// Repeats the path this many times, at most [`MOST`].
    run: fn(u64),
}

const PATHS: [Path; 14] = [
    Path { name: "seal-aes", unit: "packet", units: BATCH, run: packets::seal_aes },
    Path { name: "seal-chacha", unit: "packet", units: BATCH, run: packets::seal_chacha },
    Path { name: "open-aes", unit: "packet", units: BATCH, run: packets::open_aes },
    Path { name: "open-chacha", unit: "packet", units: BATCH, run: packets::open_chacha },
    Path { name: "replay-window", unit: "packet", units: BATCH, run: packets::replay },
    Path { name: "read-frames", unit: "packet", units: BATCH, run: streams::read_frames },
    Path { name: "build-packets", unit: "packet", units: BATCH, run: streams::build },
    Path { name: "reassemble", unit: "packet", units: BATCH, run: streams::reassemble },
    Path { name: "recovery", unit: "packet", units: BATCH, run: recovery::acknowledge },
    Path { name: "recovery-loss", unit: "packet", units: BATCH, run: recovery::lose },
    Path { name: "connection", unit: "256 KiB both ways", units: 1, run: connection::transfer },
    Path { name: "verify-chunk", unit: "chunk", units: 1, run: files::verify },
    Path { name: "compose-root", unit: "chunk", units: files::CHUNKS, run: files::compose },
    Path { name: "journal-record", unit: "chunk", units: files::RECORDS, run: files::journal },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => {
            for path in &PATHS {
                println!("{}\t{}\t{}\t{LEAST}", path.name, path.unit, path.units);
            }
            ExitCode::SUCCESS
        }
        ["cpu"] => {
            println!("{}", cpu_features());
            ExitCode::SUCCESS
        }
        ["run", name, times] => {
            let path = PATHS.iter().find(|path| path.name == name);
            let times = times.parse().ok().filter(|times| *times <= MOST);
            let (Some(path), Some(times)) = (path, times) else {
                eprintln!("no such path, or more than {MOST} times");
                return ExitCode::FAILURE;
            };
            (path.run)(times);
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: wraith-guard list | cpu | run PATH TIMES");
            ExitCode::FAILURE
        }
    }
}

/// Processor features by which BLAKE3 and aws-lc choose their code, as far as the standard library
/// reports them.
fn cpu_features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let features = [
            ("ssse3", is_x86_feature_detected!("ssse3")),
            ("sse4.1", is_x86_feature_detected!("sse4.1")),
            ("aes", is_x86_feature_detected!("aes")),
            ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
            ("movbe", is_x86_feature_detected!("movbe")),
            ("avx", is_x86_feature_detected!("avx")),
            ("avx2", is_x86_feature_detected!("avx2")),
            ("bmi2", is_x86_feature_detected!("bmi2")),
            ("adx", is_x86_feature_detected!("adx")),
            ("sha", is_x86_feature_detected!("sha")),
            ("vaes", is_x86_feature_detected!("vaes")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
        ];
        let present = features.into_iter().filter(|(_, present)| *present).map(|(name, _)| name);
        present.collect::<Vec<_>>().join("+")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::env::consts::ARCH.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_does_what_it_says() {
        for path in &PATHS {
            (path.run)(1);
            (path.run)(2);
        }
    }
}
