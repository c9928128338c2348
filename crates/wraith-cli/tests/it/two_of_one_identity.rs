//! Two receivers of one user for the same transfer, such as one in a forgotten terminal. The first
//! to accept receives it. The other reports the process and the folder of the first.

use std::io::{PipeWriter, Write};
use std::path::PathBuf;

use crate::support::journal::wait_until_verified;
use crate::support::{Outcome, Process, World, tree};

/// Large enough to be interrupted in the middle, at this rate.
const BYTES: usize = 4_000_000;
const SLOWLY: &[&str] = &["--rate", "1MB"];

struct Scene {
    world: World,
    film: PathBuf,
    sender: Process,
    ticket: String,
}

impl Scene {
    fn new() -> Self {
        let (world, film) = World::with_file("film.mov", 1, BYTES);
        let mut sender = world.send_with(&[&film], &[]);
        let ticket = sender.ticket();
        Self { world, film, sender, ticket }
    }

    fn accepting(&self, folder: &str, more: &[&str]) -> Process {
        let mut command = self.world.wraith("receiver");
        command.args(["receive", "--json", "--yes", "-o"]).arg(self.world.path(folder));
        Process::start("receive", command.args(more).arg(&self.ticket))
    }

    /// Starts a slow receiver, and waits until it has some of the film.
    fn under_way(&self, folder: &str) -> Process {
        let mut receiver = self.accepting(folder, SLOWLY);
        receiver.event("accept");
        wait_until_verified(&self.world.path(folder), "film.mov", 1);
        receiver
    }

    /// Starts a receiver and waits for its question.
    fn asking(&self, folder: &str) -> (Process, PipeWriter) {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = self.world.wraith("receiver");
        command.args(["receive", "--json", "-o"]).arg(self.world.path(folder)).arg(&self.ticket);
        let mut receiver = Process::start_with_stdin("receive", command.stdin(reader));
        receiver.event("offer");
        // The last event before the question. A receiver that has not asked yet makes room for
        // another one, and asks after it.
        receiver.event("risky_entries");
        (receiver, writer)
    }

    fn assert_told(&self, told: &Outcome, process: u32, folder: &str) {
        let error = told.expect_error(1);
        let folder = self.world.path(folder);
        let message = format!("process {process}, into {}", folder.display());
        assert!(error["message"].as_str().unwrap().contains(&message), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(&format!("kill {process}")), "{error}");
    }

    fn assert_arrived(self, received: &Outcome, folder: &str) {
        received.expect_exit(0);
        self.sender.succeed();
        tree::assert_same(&self.film, &self.world.path(folder).join("film.mov"));
    }
}

#[test]
fn a_second_receiver_reports_the_process_and_folder_of_the_first() {
    let scene = Scene::new();
    let mut first = scene.under_way("first");
    let process = first.pid();
    scene.assert_told(&scene.accepting("second", &[]).finish(), process, "first");
    assert!(!first.has_ended());
    scene.assert_arrived(&first.finish(), "first");
}

#[test]
fn a_forgotten_question_ends_when_another_window_accepts() {
    let scene = Scene::new();
    let (forgotten, _nobody) = scene.asking("forgotten");
    let mut second = scene.accepting("second", SLOWLY);
    second.event("accept");
    let process = second.pid();
    scene.assert_told(&forgotten.finish(), process, "second");
    scene.assert_arrived(&second.finish(), "second");
}

#[test]
fn of_two_questions_the_one_that_is_answered_first_wins() {
    let scene = Scene::new();
    let (mut first, mut answer) = scene.asking("first");
    let (second, _nobody) = scene.asking("second");
    let told = first.event("note");
    assert!(told["message"].as_str().unwrap().contains("first to accept"), "{told}");
    answer.write_all(b"y\n").unwrap();
    let process = first.pid();
    first.event("accept");
    scene.assert_told(&second.finish(), process, "first");
    scene.assert_arrived(&first.finish(), "first");
}

#[test]
fn a_receiver_after_the_transfer_gets_no_report_of_it() {
    let scene = Scene::new();
    let first = scene.accepting("first", &[]).finish();
    let ticket = scene.ticket.clone();
    let command = &mut scene.world.wraith("receiver");
    let home = scene.world.path("second");
    scene.assert_arrived(&first, "first");
    let later = Process::start(
        "receive",
        command.args(["receive", "--json", "--yes", "--timeout", "1", "-o"]).arg(home).arg(ticket),
    );
    later.finish().expect_error(3);
}

#[test]
fn a_no_in_one_window_leaves_the_question_in_the_other() {
    let scene = Scene::new();
    let (first, mut no) = scene.asking("first");
    let (second, mut yes) = scene.asking("second");
    no.write_all(b"n\n").unwrap();
    first.finish().expect_error(4);
    yes.write_all(b"y\n").unwrap();
    scene.assert_arrived(&second.finish(), "second");
}

#[test]
fn a_killed_receiver_is_resumed_at_once() {
    let scene = Scene::new();
    let killed = scene.under_way("here");
    killed.kill();
    let again = scene.accepting("here", &[]).finish();
    assert_eq!(again.all("reconnecting").count(), 0, "it is not taken for another");
    scene.assert_arrived(&again, "here");
}

#[test]
fn all_forgotten_questions_end_when_another_window_accepts() {
    let scene = Scene::new();
    let (one, _nobody) = scene.asking("one");
    let (two, _also_nobody) = scene.asking("two");
    let third = scene.accepting("third", &[]);
    let process = third.pid();
    let third = third.finish();
    scene.assert_told(&one.finish(), process, "third");
    scene.assert_told(&two.finish(), process, "third");
    scene.assert_arrived(&third, "third");
}

/// The next run continues for the killed receiver that had accepted: the sender keeps the place for
/// it.
#[test]
fn a_run_continues_for_a_killed_receiver_that_had_accepted_beside_one_that_waited() {
    let scene = Scene::new();
    let (waits, _nobody) = scene.asking("elsewhere");
    let accepted = scene.under_way("here");
    waits.kill();
    accepted.kill();
    let again = scene.accepting("here", &[]).finish();
    scene.assert_arrived(&again, "here");
}

/// Without a record the receiver has no number, so the sender does not keep its place.
#[test]
fn without_a_folder_for_records_a_killed_receiver_is_continued_too() {
    let scene = Scene::new();
    let home = scene.world.path("home-receiver");
    std::fs::create_dir_all(&home).unwrap();
    // A file in the place of the folder: no record can be written.
    std::fs::write(home.join("receiving"), "").unwrap();
    let killed = scene.under_way("here");
    killed.kill();
    let again = scene.accepting("here", &[]).finish();
    scene.assert_arrived(&again, "here");
}
