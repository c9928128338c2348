//! Handshakes in memory, with both sides on this thread. Handshakes of wraith alternate with
//! handshakes of TLS 1.3 (rustls), which use the same key agreement (X25519MLKEM768) and Ed25519
//! certificates on both sides. So a slow minute of the machine affects both.
//!
//! Every handshake is checked: both sides authenticate each other and have the same keys. The
//! program prints medians and their ratio. It also prints how many handshakes per second the
//! responder can process; a flood of honest callers would use up this resource.

mod tls;
mod wraith;

use std::time::{Duration, Instant};

use clap::Parser;

/// Handshakes timed together: long enough for the clock.
const BLOCK: u32 = 8;

#[derive(Debug, Parser)]
struct Args {
    /// Number of blocks of eight handshakes of each
    #[arg(long, default_value_t = 300)]
    rounds: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (mut ours, theirs) = (wraith::Wraith::new(), tls::Tls::new()?);
    let (mut whole, mut dialled, mut tls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.rounds.max(1) {
        whole.push(timed(|| ours.shake_hands()));
        tls.push(timed(|| theirs.shake_hands()));
        dialled.push(ours.time_of_responder(BLOCK) / BLOCK);
    }
    let [whole, tls, dialled] = [whole, tls, dialled].map(median);
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    println!("handshake, both sides, both authenticated, medians of {} blocks:", args.rounds);
    println!("  wraith (Noise XKhfs, X25519 + ML-KEM-768)      {:7.1} µs", micros(whole));
    println!("  rustls (TLS 1.3, X25519MLKEM768, Ed25519 both) {:7.1} µs", micros(tls));
    println!(
        "  ratio                                          {:7.2}",
        micros(whole) / micros(tls)
    );
    println!(
        "the side that is dialled alone: {:.1} µs, {:.0} a second on one core",
        micros(dialled),
        1.0 / dialled.as_secs_f64()
    );
    Ok(())
}

/// Times one handshake, as the mean of a block.
fn timed(mut handshake: impl FnMut()) -> Duration {
    let begin = Instant::now();
    (0..BLOCK).for_each(|_| handshake());
    begin.elapsed() / BLOCK
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
