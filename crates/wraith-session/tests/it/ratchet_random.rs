//! Random conversations: lost, late, duplicate and damaged messages, with states saved and restored
//! in between.

use proptest::collection::vec;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use wraith_session::ratchet::*;

use crate::ratchet_support::*;
use crate::support::rng;

/// The next action. Sides and messages are selected by remainder.
#[derive(Clone, Debug)]
enum Event {
    Send { side: usize, len: usize },
    Arrive { side: usize, which: usize },
    ArriveAgain { side: usize, which: usize },
    Lose { side: usize, which: usize },
    Damage { side: usize, which: usize, at: usize, bits: u8 },
    SaveAndRestore { side: usize },
}

fn event() -> impl Strategy<Value = Event> {
    let side = 0..2_usize;
    prop_oneof![
        6 => (side.clone(), 0..300_usize).prop_map(|(side, len)| Event::Send { side, len }),
        6 => (side.clone(), any::<usize>()).prop_map(|(side, which)| Event::Arrive { side, which }),
        2 => (side.clone(), any::<usize>())
            .prop_map(|(side, which)| Event::ArriveAgain { side, which }),
        1 => (side.clone(), any::<usize>()).prop_map(|(side, which)| Event::Lose { side, which }),
        2 => (side.clone(), any::<usize>(), any::<usize>(), 1..=255_u8)
            .prop_map(|(side, which, at, bits)| Event::Damage { side, which, at, bits }),
        1 => side.prop_map(|side| Event::SaveAndRestore { side }),
    ]
}

struct Sent {
    message: Vec<u8>,
    text: Vec<u8>,
    chain: u32,
}

/// One direction of a conversation.
#[derive(Default)]
struct Direction {
    under_way: Vec<Sent>,
    lost: Vec<Sent>,
    opened: Vec<Sent>,
    /// The sender's chain, as the specification counts it.
    chain: u32,
    /// The latest chain with an opened message.
    opened_chain: u32,
    /// Whether the next message begins a chain.
    turns: bool,
}

struct Conversation {
    sides: [Ratchet; 2],
    /// From side 0 and from side 1.
    directions: [Direction; 2],
    rng: ChaCha20Rng,
}

impl Conversation {
    fn new(seed: u64, turns: usize) -> Self {
        let mut rng = rng(seed);
        let (mut alice, mut bob) =
            if turns == 0 { started(&mut rng) } else { established(&mut rng) };
        for _ in 0..turns {
            turn(&mut alice, &mut bob, &mut rng);
        }
        let mut directions = [Direction::default(), Direction::default()];
        directions[0].turns = turns > 0;
        // Without turns Bob has opened Alice's first message, and begins a chain; otherwise his
        // last one is open already.
        directions[1].turns = turns == 0;
        Self { sides: [alice, bob], directions, rng }
    }

    fn send(&mut self, side: usize, len: usize) {
        let text: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let message = seal(&mut self.sides[side], &mut self.rng, &text);
        let direction = &mut self.directions[side];
        direction.chain += u32::from(std::mem::take(&mut direction.turns));
        let chain = direction.chain;
        direction.under_way.push(Sent { message, text, chain });
    }

    /// Delivers a message of the other side to `side`.
    fn arrive(&mut self, side: usize, which: usize) {
        let from = 1 - side;
        let count = self.directions[from].under_way.len();
        if count == 0 {
            return;
        }
        let sent = self.directions[from].under_way.remove(which % count);
        match open(&mut self.sides[side], &sent.message) {
            Ok(text) => {
                assert_eq!(text, sent.text);
                if sent.chain > self.directions[from].opened_chain {
                    self.directions[from].opened_chain = sent.chain;
                    self.directions[side].turns = true;
                }
                self.directions[from].opened.push(sent);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn play(&mut self, event: Event) {
        match event {
            Event::Send { side, len } => self.send(side, len),
            Event::Arrive { side, which } => self.arrive(side, which),
            Event::ArriveAgain { side, which } => {
                let opened = &self.directions[1 - side].opened;
                if let Some(sent) = opened.get(which % opened.len().max(1)) {
                    let before = self.sides[side].save();
                    assert!(open(&mut self.sides[side], &sent.message).is_err());
                    assert!(before == self.sides[side].save());
                }
            }
            Event::Lose { side, which } => {
                let direction = &mut self.directions[side];
                if !direction.under_way.is_empty() {
                    let sent = direction.under_way.remove(which % direction.under_way.len());
                    direction.lost.push(sent);
                }
            }
            Event::Damage { side, which, at, bits } => {
                let under_way = &self.directions[1 - side].under_way;
                if let Some(sent) = under_way.get(which % under_way.len().max(1)) {
                    let mut message = sent.message.clone();
                    let at = at % message.len();
                    message[at] ^= bits;
                    let before = self.sides[side].save();
                    assert!(open(&mut self.sides[side], &message).is_err());
                    assert!(before == self.sides[side].save());
                }
            }
            Event::SaveAndRestore { side } => {
                let saved = self.sides[side].save();
                self.sides[side] = Ratchet::restore(&saved).unwrap();
                assert!(saved == self.sides[side].save());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Runs from the start, and around the chains with ML-KEM parts.
    #[test]
    fn every_message_that_arrives_opens_once(
        seed in any::<u64>(),
        turns in prop_oneof![Just(0_usize), Just(1), 20..26_usize],
        events in vec(event(), 1..160),
    ) {
        let mut conversation = Conversation::new(seed, turns);
        for event in events {
            conversation.play(event);
        }
        // Messages still in flight arrive in the end, however late.
        for side in [0, 1] {
            while !conversation.directions[1 - side].under_way.is_empty() {
                conversation.arrive(side, 0);
            }
        }
    }

    #[test]
    fn garbage_opens_nowhere_and_changes_nothing(
        seed in any::<u64>(),
        kind in prop_oneof![Just(0x20_u8), Just(0x21), any::<u8>()],
        mut message in vec(any::<u8>(), 0..1600),
    ) {
        if let Some(first) = message.first_mut() {
            *first = kind;
        }
        let (mut alice, _) = established(&mut rng(seed));
        let before = alice.save();
        prop_assert!(open(&mut alice, &message).is_err());
        prop_assert!(before == alice.save());
    }

    /// Recombines parts of several messages.
    #[test]
    fn parts_of_different_messages_do_not_fit(
        seed in any::<u64>(),
        cuts in vec(0..120_usize, 1..4),
        offers in any::<bool>(),
    ) {
        let mut rng = rng(seed);
        let (mut alice, mut bob) = established(&mut rng);
        if offers {
            until_offer(&mut alice, &mut bob, &mut rng);
        }
        let messages = [1, 2, 3, 4].map(|text| seal(&mut alice, &mut rng, &[text; 40]));
        let mut mixed = messages[0].clone();
        for (cut, message) in cuts.iter().zip(&messages[1..]) {
            let at = cut * message.len() / 120;
            mixed[at..].copy_from_slice(&message[at..]);
        }
        let before = bob.save();
        prop_assume!(!messages.contains(&mixed));
        prop_assert!(open(&mut bob, &mixed).is_err());
        prop_assert!(before == bob.save());
    }
}
