//! Boxes of a path as words. `rate=500,100 delay=25 loss=0.5` is a line of 500 Mbit/s behind a
//! queue of 100 ms, with a delay of 25 ms, which loses one packet in 200. The boxes are the
//! simulator's, so a link has the same meaning in both.
//!
//! | word | box |
//! |---|---|
//! | `rate=MBIT[,QUEUE_MS]` | bottleneck with a drop-tail queue (100 ms), whole IP packets counted |
//! | `delay=MS` | propagation, one way |
//! | `loss=PERCENT` | independent loss |
//! | `burst=PERCENT,PACKETS` | loss in bursts of a mean length |
//! | `jitter=MS` / `scramble=MS` | varying delay that keeps order / that does not |
//! | `reorder=PERCENT,MS` | some packets held back |
//! | `batch=MS` | delivery in batches |
//! | `duplicate=PERCENT,MS` | some packets twice |
//! | `cut=AFTER_MS,FOR_MS` | the cable pulled, counted from the start of the link |

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use wraith_sim::link::{
    Aggregate, Blackhole, BurstLoss, Delay, Duplicate, Hop, Hops, Jitter, Loss, Rate, Reorder,
};

/// Default queue of a bottleneck: the simulator's.
const QUEUE_MS: f64 = 100.0;
const BYTES_PER_MBIT_MS: f64 = 1e6 / 8.0 / 1e3;

/// Parses the boxes that `words` name, from first to last.
pub fn parse(words: &str) -> Result<Hops> {
    words.split_whitespace().map(|word| one(word).with_context(|| format!("in {word:?}"))).collect()
}

fn one(word: &str) -> Result<Box<dyn Hop>> {
    let (name, values) = word.split_once('=').context("a box is NAME=VALUE[,VALUE]")?;
    let values = values.split(',').map(number).collect::<Result<Vec<_>>>()?;
    Ok(match (name, values[..].as_ref()) {
        ("rate", &[mbit]) => rate(mbit, QUEUE_MS),
        ("rate", &[mbit, queue_ms]) => rate(mbit, queue_ms),
        ("delay", &[by]) => Box::new(Delay::new(ms(by))),
        ("loss", &[percent]) => Box::new(Loss::percent(percent)),
        ("burst", &[percent, packets]) => Box::new(BurstLoss::percent(percent, packets)),
        ("jitter", &[max]) => Box::new(Jitter::new(ms(max))),
        ("scramble", &[max]) => Box::new(Jitter::new(ms(max)).reordering()),
        ("reorder", &[percent, by]) => Box::new(Reorder::percent(percent, ms(by))),
        ("batch", &[every]) => Box::new(Aggregate::every(ms(every))),
        ("duplicate", &[percent, after]) => Box::new(Duplicate::percent(percent, ms(after))),
        ("cut", &[after, lasting]) => Box::new(Blackhole::new(ms(after), ms(lasting))),
        _ => bail!("no such box with {} values", values.len()),
    })
}

fn number(text: &str) -> Result<f64> {
    let number: f64 = text.parse().with_context(|| format!("{text:?} is no number"))?;
    ensure!((0.0..1e9).contains(&number), "{text} is out of range");
    Ok(number)
}

fn rate(mbit: f64, queue_ms: f64) -> Box<dyn Hop> {
    let queue_bytes = mbit * queue_ms * BYTES_PER_MBIT_MS;
    Box::new(Rate::bits((mbit * 1e6) as u64).queue(queue_bytes as u64).header(0))
}

fn ms(millis: f64) -> Duration {
    Duration::from_secs_f64(millis / 1e3)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use wraith_core::Time;
    use wraith_sim::link::{Datagram, Path};

    use super::*;

    const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

    fn deliveries(words: &str, packets: usize) -> Vec<u64> {
        let mut path = Path::new(1, parse(words).unwrap());
        for _ in 0..packets {
            path.push(Time::ZERO, Datagram::new(NOWHERE, NOWHERE, vec![0; 1500]));
        }
        let mut out = Vec::new();
        while let Some(at) = path.next() {
            while path.pop(at).is_some() {
                out.push(at.as_nanos());
            }
        }
        out
    }

    #[test]
    fn a_packet_of_1500_bytes_takes_its_time_on_the_line_and_the_way() {
        // 12,000 bits at 12 Mbit/s take a millisecond.
        assert_eq!(deliveries("rate=12 delay=2.5", 2), [3_500_000, 4_500_000]);
    }

    #[test]
    fn the_queue_is_as_long_as_it_says() {
        assert_eq!(deliveries("rate=12,3", 10).len(), 3);
    }

    #[test]
    fn every_box_of_the_table_is_understood() {
        let words = "rate=1,50 delay=1 loss=1 burst=1,5 jitter=1 scramble=1 reorder=1,1 batch=1 \
                     duplicate=1,1 cut=0,1";
        assert_eq!(parse(words).unwrap().len(), 10);
    }

    #[test]
    fn nonsense_is_refused() {
        for words in ["speed=1", "rate", "rate=fast", "delay=1,2", "loss=-1", "delay=NaN"] {
            assert!(parse(words).is_err(), "{words} was taken");
        }
    }
}
