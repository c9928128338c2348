//! One operation, timed on inputs of two classes.
//!
//! What must stay true, as each would be a difference between the classes that is none of the operation:
//!
//! - Inputs of both classes lie in one array, in the order of their use, before the clock starts, and each is copied into the one buffer
//!   that the operation reads: both classes touch the same addresses in the same order.
//! - The class of each measurement is drawn, so nothing that comes and goes on the machine (other programs, clock rates) is of one class.
//! - Nothing that is timed knows the class.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

/// Bytes of inputs that are prepared at a time: they stay in the second-level cache.
const BLOCK_BYTES: usize = 128 << 10;
/// One measurement in so many comes before those that count, to warm up caches, branch predictors and the clock rate.
const WARM_UP_SHARE: usize = 20;

/// Of what kind an input is. Which kinds these are each target says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Usually one fixed input.
    A,
    /// Usually random ones.
    B,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Of both classes together.
    pub measurements: usize,
    /// Operations in each measurement, on as many inputs of one class: more than one of what takes less than the clock resolves well.
    pub batch: usize,
}

/// Nanoseconds of each measurement, of class A and of class B.
pub type Times = [Vec<f64>; 2];

/// The times of `operation` on inputs that `input` makes.
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

/// The compiler sees neither what is in the buffer nor that a result is not used, and keeps the calls of the clock where they are.
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
