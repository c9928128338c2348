//! Kills the receiver, the sender or both a hundred times with SIGKILL at random moments. Every
//! transfer completes, no final name refers to a partial file, and no verified chunk is fetched
//! again.

use std::path::{Path, PathBuf};

use crate::support::journal::verified_chunks;
use crate::support::random::Random;
use crate::support::{Outcome, Process, World, tree};

const KILLS: u32 = 100;
const CHUNK: u64 = 256 << 10;
/// Whole chunks and a remainder.
const FILM_BYTES: u64 = 160 * CHUNK + 1234;
const FILM_CHUNKS: u64 = 161;
const SMALL_FILES: u64 = 40;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Receiver,
    Sender,
    Both,
}

/// One transfer, from its first kill to its completion.
struct Transfer {
    world: World,
    sender: Option<Process>,
    ticket: Option<String>,
}

impl Transfer {
    fn new(seed: u64) -> Self {
        let world = World::new();
        let root = world.source().join("tree");
        tree::file(&root.join("film.mov"), seed, FILM_BYTES as usize);
        for n in 0..SMALL_FILES {
            tree::file(&root.join(format!("small/{n}")), n, (n * 1000) as usize);
        }
        Self { world, sender: None, ticket: None }
    }

    fn root(&self) -> PathBuf {
        self.world.source().join("tree")
    }

    fn part_folder(&self) -> PathBuf {
        self.world.target().join("tree")
    }

    /// Returns the number of chunks of the film that must never move again.
    fn verified(&self) -> u64 {
        // The film gets its name before its journal is removed, so this order misses neither.
        let journal = verified_chunks(&self.part_folder(), "film.mov");
        let whole = self.part_folder().join("film.mov").exists();
        if whole { FILM_CHUNKS } else { journal }
    }

    /// Starts the missing sides, and kills `victim` when a random part of the rest has arrived.
    /// Returns the number of chunks verified by then.
    fn round(&mut self, victim: Victim, random: &mut Random) -> u64 {
        let before = self.verified();
        let goal = (before + random.below(FILM_CHUNKS / 4)).min(FILM_CHUNKS);
        let sender = self.sender.take().unwrap_or_else(|| self.start_sender());
        let ticket = self.ticket.clone().expect("a sender has been started");
        let mut receiver = self.world.receive_with(&ticket, &["--reconnect", "0"]);
        receiver.event("accept");
        while self.verified() < goal {
            if receiver.has_ended() {
                break;
            }
            std::thread::yield_now();
        }
        let received = match victim {
            Victim::Receiver => {
                self.sender = Some(sender);
                receiver.kill()
            }
            Victim::Sender => {
                sender.kill();
                // The receiver would wait for the sender, so the test stops it.
                receiver.signal(libc::SIGINT);
                receiver.finish()
            }
            Victim::Both => {
                sender.kill();
                receiver.kill()
            }
        };
        self.check_names();
        self.check_counts(&received, before);
        let after = self.verified();
        assert!(after >= before, "{victim:?}: {before} chunks were verified, now {after}");
        after
    }

    /// Runs to the end without a kill. Verified chunks must not move again.
    fn complete(mut self) {
        if !self.is_whole() {
            let before = self.verified();
            let mut sender = self.sender.take().unwrap_or_else(|| self.start_sender());
            let mut received = self.world.receive(&self.ticket.clone().unwrap()).finish();
            if received.status.code() == Some(3) {
                // The receiver was killed after its receipt and before it had cleaned up, so the
                // sender has ended well. The receiver's list of completed files remains, and the
                // next ticket cannot use it.
                sender.succeed();
                for marks in tree::leftovers(&self.world.target()) {
                    assert_eq!(
                        marks.extension().and_then(|e| e.to_str()),
                        Some("state"),
                        "{marks:?}"
                    );
                    std::fs::remove_file(marks).unwrap();
                }
                self.ticket = None;
                sender = self.start_sender();
                received = self.world.receive(&self.ticket.clone().unwrap()).finish();
            }
            received.expect_exit(0);
            sender.succeed();
            self.check_counts(&received, before);
        }
        tree::assert_same(&self.root(), &self.part_folder());
        assert_eq!(tree::leftovers(&self.world.target()), Vec::<PathBuf>::new());
    }

    fn start_sender(&mut self) -> Process {
        let mut sender = self.world.send_with(&[self.root()], &["--reconnect", "600"]);
        let ticket = sender.ticket();
        let known = self.ticket.get_or_insert(ticket.clone());
        assert_eq!(*known, ticket, "the same command offers the same ticket again");
        sender
    }

    /// Checks that every file under its final name is complete.
    fn check_names(&self) {
        let (here, there) = (self.root(), self.part_folder());
        let small = |n: u64| format!("small/{n}");
        let names = (0..SMALL_FILES).map(small).chain(["film.mov".to_owned()]);
        for name in names.filter(|name| there.join(name).exists()) {
            let same = read(&here.join(&name)) == read(&there.join(&name));
            assert!(same, "{name} stands half-written under its name");
        }
    }

    /// Checks that the last connection moved no more than was missing before.
    fn check_counts(&self, received: &Outcome, before: u64) {
        let Some(done) = received.all("done").last() else { return };
        let most = (FILM_CHUNKS - before) * CHUNK + SMALL_FILES * SMALL_FILES * 1000;
        let moved = done["bytes_moved"].as_u64().unwrap();
        assert!(moved <= most, "{moved} bytes moved; {before} chunks were verified");
    }

    fn is_whole(&self) -> bool {
        let there = self.part_folder();
        let small = (0..SMALL_FILES).all(|n| there.join(format!("small/{n}")).exists());
        small && there.join("film.mov").exists() && tree::leftovers(&self.world.target()).is_empty()
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn a_hundred_kills_lose_nothing() {
    let mut random = Random::fresh();
    let mut transfer = Transfer::new(0);
    let (mut mid_way, mut completed) = (0, 0);
    for kill in 1..=KILLS {
        let victim = [Victim::Receiver, Victim::Sender, Victim::Both][random.below(3) as usize];
        let verified = transfer.round(victim, &mut random);
        mid_way += u32::from((1..FILM_CHUNKS).contains(&verified));
        if verified == FILM_CHUNKS || kill == KILLS {
            transfer.complete();
            transfer = Transfer::new(kill.into());
            completed += 1;
        }
    }
    eprintln!("{mid_way} of {KILLS} kills with the film under way, {completed} transfers");
    assert!(mid_way >= KILLS / 4, "only {mid_way} kills came while the film was under way");
}
