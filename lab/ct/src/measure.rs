//! Times one operation on inputs of two classes.
//!
//! Invariants. Without each of them the classes would differ for reasons outside the operation:
//!
//! - Inputs of both classes are in one array, in the order of their use, before the clock starts.
//!   Each is copied into the one buffer that the operation reads, so both classes touch the same
//!   addresses in the same order.
//! - The class of each measurement is random, so temporary effects on the machine (other programs,
//!   clock rates) affect both classes.
//! - The timed code does not depend on the class.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

/// Bytes of inputs prepared at a time: they stay in the second-level cache.
const BLOCK_BYTES: usize = 128 << 10;
/// Reciprocal share of the uncounted measurements before the others, which warm up caches, branch
/// predictors and the clock rate.
const WARM_UP_SHARE: usize = 20;

/// Class of an input. Each target defines its two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Usually one fixed input.
    A,
    /// Usually random inputs.
    B,
}

/// Number of measurements of a target.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Measurements of both classes together.
    pub measurements: usize,
    /// Operations in each measurement, on as many inputs of one class: more than one if an
    /// operation is too short for the clock.
    pub batch: usize,
}

/// Nanoseconds of each measurement, of class A and of class B.
pub type Times = [Vec<f64>; 2];

/// Times `operation` on inputs that `input` makes.
pub fn timed<I: Clone, R>(
    plan: Plan,
    rng: &mut ChaCha20Rng,
    mut input: impl FnMut(Class, &mut ChaCha20Rng) -> I,
    operation: impl Fn(&I) -> R,
) -> Times {
    let warm_up = plan.measurements / WARM_UP_SHARE;
    let all = warm_up + plan.measurements;
    let block = (BLOCK_BYTES / (plan.batch * size_of::<I>().max(1))).max(8);
    let mut times = [(); 2].map(|()| Vec::with_capacity(plan.measurements));
    let mut buffer: Vec<I> = (0..plan.batch).map(|_| input(Class::A, rng)).collect();
    let (mut classes, mut inputs) = (Vec::new(), Vec::new());
    let mut done = 0;
    while done < all {
        classes.clear();
        classes.extend((0..block.min(all - done)).map(|_| draw(rng)));
        inputs.clear();
        for class in &classes {
            inputs.extend((0..plan.batch).map(|_| input(*class, rng)));
        }
        for (class, inputs) in classes.iter().zip(inputs.chunks_exact(plan.batch)) {
            buffer.clone_from_slice(inputs);
            let took = time_of(&buffer, &operation);
            if done >= warm_up {
                times[*class as usize].push(took.as_nanos() as f64);
            }
            done += 1;
        }
    }
    times
}

fn draw(rng: &mut ChaCha20Rng) -> Class {
    if rng.next_u32() & 1 == 0 { Class::A } else { Class::B }
}

/// Times one batch. The compiler sees neither the content of the buffer nor that a result is
/// unused, and keeps the calls of the clock in place.
#[inline(never)]
fn time_of<I, R>(buffer: &[I], operation: &impl Fn(&I) -> R) -> Duration {
    let buffer = black_box(buffer);
    let begun = Instant::now();
    for input in buffer {
        black_box(operation(input));
    }
    begun.elapsed()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn every_measurement_runs_a_batch_of_one_class_in_one_buffer() {
        let (calls, ones) = (Cell::new(0), Cell::new(0));
        let addresses = Cell::new(Vec::new());
        let times = timed(
            Plan { measurements: 1000, batch: 2 },
            &mut ChaCha20Rng::seed_from_u64(1),
            |class, _| (class == Class::B) as u64,
            |input| {
                calls.set(calls.get() + 1);
                ones.set(ones.get() + *input);
                let mut seen = addresses.take();
                seen.push(std::ptr::from_ref(input).addr());
                addresses.set(seen);
            },
        );
        let counted = times.each_ref().map(Vec::len);
        assert!(counted[0] + counted[1] >= 1000);
        assert!(counted.iter().all(|&n| n > 400), "{counted:?}");
        assert!(calls.get() >= 2 * 1050);
        assert_eq!(ones.get() % 2, 0, "a batch is of one class");
        let mut seen = addresses.take();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2);
    }
}
