//! Random schedules of two sides: loss, reordering, repetition, turns, and states that are saved
//! and restored in between. A model says of each genuine message whether it opens. Whatever was
//! lost, the conversation goes on afterwards.
//!
//! `WRAITH_TEST_ROUNDS` sets the number of schedules. A failure names its schedule, which
//! `WRAITH_TEST_FIRST` repeats.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_session::ratchet::*;

use crate::ratchet_model::{Expected, Position, Receiver};
use crate::ratchet_support::*;
use crate::support;

const SCHEDULES: u64 = 300;
const HOUR: Duration = Duration::from_secs(3600);

/// Saved states from which the schedules begin.
struct Start {
    states: [Vec<u8>; 2],
    is_answered: bool,
}

/// Returns an unanswered conversation, an answered one, and one shortly before the steps with
/// ML-KEM.
fn starts() -> &'static [Start; 3] {
    static STARTS: OnceLock<[Start; 3]> = OnceLock::new();
    STARTS.get_or_init(|| {
        let mut rng = support::rng(40);
        let save = |(a, b): (Ratchet, Ratchet), is_answered| Start {
            states: [a.save().to_vec(), b.save().to_vec()],
            is_answered,
        };
        let (unanswered, answered) = (started(&mut rng), established(&mut rng));
        let mut aged = established(&mut rng);
        for _ in 0..KEM_INTERVAL / 2 - 2 {
            turn(&mut aged.0, &mut aged.1, &mut rng);
        }
        [save(unanswered, false), save(answered, true), save(aged, true)]
    })
}

struct Sent {
    at: Position,
    /// Length of the sender's chain before.
    previous_len: u32,
    message: Vec<u8>,
}

/// One direction of a conversation.
struct Direction {
    receiver: Receiver,
    /// Messages in each chain so far; the first entry is not a chain.
    lens: Vec<u32>,
    /// Whether the next message begins a chain.
    turns: bool,
    under_way: Vec<Sent>,
    /// Some of the messages that have arrived, for repetitions.
    arrived: Vec<Sent>,
}

impl Direction {
    fn new(has_begun: bool, turns: bool) -> Self {
        let (receiver, lens) = match has_begun {
            true => (Receiver::with_one_message(), vec![0, 1]),
            false => (Receiver::default(), vec![0]),
        };
        Self { receiver, lens, turns, under_way: Vec::new(), arrived: Vec::new() }
    }
}

/// Numbers of genuine messages by their result.
#[derive(Debug, Default)]
struct Results {
    opened: u64,
    too_old: u64,
    replayed: u64,
    unauthentic: u64,
}

impl Results {
    fn count(&mut self, expected: Expected) {
        *match expected {
            Expected::Opens => &mut self.opened,
            Expected::TooOld => &mut self.too_old,
            Expected::Replayed { .. } => &mut self.replayed,
            Expected::Unauthentic => &mut self.unauthentic,
        } += 1;
    }
}

struct Schedule<'a> {
    results: &'a mut Results,
    rng: ChaCha20Rng,
    sides: [Ratchet; 2],
    /// From side 0 and from side 1.
    directions: [Direction; 2],
    time: Duration,
}

impl<'a> Schedule<'a> {
    fn new(number: u64, results: &'a mut Results) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(number);
        let start = &starts()[[0, 1, 1, 2][rng.next_u32() as usize % 4]];
        let sides = [0, 1].map(|side: usize| Ratchet::restore(&start.states[side]).unwrap());
        let directions = match start.is_answered {
            // The last message was from side 1.
            true => [Direction::new(true, true), Direction::new(true, false)],
            false => [Direction::new(true, false), Direction::new(false, true)],
        };
        Self { results, rng, sides, directions, time: Duration::ZERO }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.rng.next_u64() % bound as u64) as usize
    }

    fn send(&mut self, side: usize) {
        let message = seal(&mut self.sides[side], &mut self.rng, b"text");
        let direction = &mut self.directions[side];
        if std::mem::take(&mut direction.turns) {
            direction.lens.push(0);
        }
        let chain = direction.lens.len() - 1;
        let number = direction.lens[chain];
        direction.lens[chain] += 1;
        let previous_len = direction.lens[chain - 1];
        let at = Position { chain: chain as u32, number };
        direction.under_way.push(Sent { at, previous_len, message });
    }

    /// Delivers the message `which` of `from` and compares the result with the model.
    fn arrive(&mut self, from: usize, which: usize) {
        let sent = self.directions[from].under_way.swap_remove(which);
        let receiver = &mut self.directions[from].receiver;
        let (expected, before) = (receiver.expects(sent.at), receiver.latest_chain());
        let result = open(&mut self.sides[1 - from], &sent.message);
        self.results.count(expected);
        match (expected, result) {
            (Expected::Opens, Ok(text)) => {
                assert_eq!(text, b"text");
                receiver.opened(sent.at, sent.previous_len);
                if receiver.latest_chain() > before {
                    self.directions[1 - from].turns = true;
                }
            }
            (expected, Err(error)) if expected.allows(&error) => {}
            (expected, result) => panic!("{:?}: {expected:?}, but {result:?}", sent.at),
        }
        let direction = &mut self.directions[from];
        assert_eq!(self.sides[1 - from].missing(), direction.receiver.missing());
        if direction.arrived.len() < 64 {
            direction.arrived.push(sent);
        }
    }

    /// Delivers an arrived message again.
    fn repeat(&mut self, from: usize) {
        let count = self.directions[from].arrived.len();
        if count > 0 {
            let which = self.below(count);
            let direction = &self.directions[from];
            let sent = &direction.arrived[which];
            let expected = direction.receiver.expects(sent.at);
            self.results.count(expected);
            let error = open(&mut self.sides[1 - from], &sent.message).unwrap_err();
            assert!(expected.allows(&error), "{:?}: {expected:?}, but {error}", sent.at);
        }
    }

    /// Delivers a message under way with a changed header or text.
    fn forge(&mut self, from: usize) {
        let count = self.directions[from].under_way.len();
        if count > 0 {
            let (which, in_text) = (self.below(count), self.below(2) == 0);
            let direction = &self.directions[from];
            let sent = &direction.under_way[which];
            let mut message = sent.message.clone();
            let last = message.len() - 1;
            // A message ends with header (57 bytes), perhaps an ML-KEM part, text and tag.
            let is_plain = last + 1 == OVERHEAD_BYTES + 4;
            message[if is_plain && !in_text { 40 } else { last }] ^= 1;
            let error = open(&mut self.sides[1 - from], &message).unwrap_err();
            let expected = direction.receiver.expects(sent.at);
            // A text whose key is gone cannot be checked.
            let is_right = error == DecryptError::Unauthentic
                || (in_text || !is_plain) && expected.allows(&error);
            assert!(is_right, "{:?}, changed: {error}", sent.at);
        }
    }

    fn restore(&mut self, side: usize) {
        self.sides[side] = Ratchet::restore(&self.sides[side].save()).unwrap();
    }

    fn set_time(&mut self, time: Duration) {
        self.time = time;
        for side in [0, 1] {
            self.sides[side].set_time(time);
            self.directions[1 - side].receiver.set_time(time);
        }
    }

    fn step(&mut self) {
        let side = self.below(2);
        let count = self.directions[side].under_way.len();
        match self.below(32) {
            0..10 => (0..=self.below(4)).for_each(|_| self.send(side)),
            10..24 if count > 0 => {
                let which = self.below(count);
                self.arrive(side, which);
            }
            24 if count > 0 => {
                // A burst is lost.
                let left = self.below(count);
                self.directions[side].under_way.truncate(left);
            }
            25..27 => self.repeat(side),
            27..29 => self.forge(side),
            29 => self.restore(side),
            30 => {
                let hours = self.rng.next_u32() % 60;
                self.set_time(self.time + HOUR * hours);
            }
            _ => {}
        }
    }

    /// Loses `lost` messages and delivers the next one.
    fn lose(&mut self, side: usize, lost: usize) {
        for _ in 0..=lost {
            self.send(side);
        }
        let last = self.directions[side].under_way.len() - 1;
        self.arrive(side, last);
    }

    /// Lets all messages under way arrive, in random order.
    fn settle(&mut self) {
        for side in [0, 1] {
            while let count @ 1.. = self.directions[side].under_way.len() {
                let which = self.below(count);
                self.arrive(side, which);
            }
        }
    }

    /// Passes messages of both sides, each of which must open.
    fn goes_on(&mut self) {
        for side in [0, 1, 0, 1] {
            self.send(side);
            let last = self.directions[side].under_way.len() - 1;
            let at = self.directions[side].under_way[last].at;
            assert_eq!(self.directions[side].receiver.expects(at), Expected::Opens);
            self.arrive(side, last);
        }
    }

    fn run(&mut self, number: u64) {
        for _ in 0..20 + self.below(100) {
            self.step();
        }
        // Rare events beyond a limit, each of them in the shortest run, too.
        match number % 4096 {
            rare if rare % 64 == 1 => {
                let (side, lost) = (self.below(2), self.below(2500));
                self.lose(side, lost);
            }
            2 => {
                for _ in 0..MISSING_CHAINS_MAX + FORGOTTEN_CHAINS_MAX + 50 + self.below(50) {
                    let lost = 1 + self.below(2);
                    self.lose(0, lost);
                    self.lose(1, 0);
                }
            }
            3 => {
                let side = self.below(2);
                for _ in 0..SKIPPED_LIFETIME_MESSAGES + 20 {
                    let lost = usize::from(self.below(500) == 0);
                    self.lose(side, lost);
                }
            }
            _ => {}
        }
        for _ in 0..self.below(40) {
            self.step();
        }
        self.goes_on();
        self.settle();
        self.goes_on();
    }
}

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |number| number.parse().unwrap())
}

#[test]
fn random_schedules_open_each_message_once_or_call_it_too_old() {
    let (mut results, first) = (Results::default(), number_of("WRAITH_TEST_FIRST", 0));
    let rounds = number_of("WRAITH_TEST_ROUNDS", SCHEDULES);
    for number in first..first + rounds {
        let play = AssertUnwindSafe(|| Schedule::new(number, &mut results).run(number));
        assert!(catch_unwind(play).is_ok(), "schedule {number}");
    }
    println!("{rounds} schedules: {results:?}");
    let Results { opened, too_old, replayed, unauthentic } = results;
    if first == 0 && rounds >= SCHEDULES {
        assert!(
            opened > 10_000 && [too_old, replayed, unauthentic].iter().all(|count| *count > 50)
        );
    }
}
