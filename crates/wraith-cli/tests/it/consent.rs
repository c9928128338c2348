//! Consent covers only the offer that was shown. If the sender offers something else later, the
//! receiver does not write it.

use std::fs;
use std::io::{PipeWriter, Write};

use wraith_files::Entry;
use wraith_transfer::Offer;

use crate::lying::sender::{Liar, LyingSender, file, folder, offer_of};
use crate::support::{Process, World, tree};

/// Starts a `wraith receive` that asks. Returns it with the pipe for its answers.
fn asking(world: &World, ticket: &str, more: &[&str]) -> (Process, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "-o"]).arg(world.target()).args(more).arg(ticket);
    (Process::start_with_stdin("receive", command.stdin(reader)), writer)
}

/// The same with a sender, in a world of its own.
fn asked() -> (World, LyingSender, Process, PipeWriter) {
    let (world, sender) = (World::new(), LyingSender::listen());
    let (receiver, answers) = asking(&world, &sender.ticket(), &[]);
    (world, sender, receiver, answers)
}

fn answer(answers: &mut PipeWriter, words: &str) {
    answers.write_all(words.as_bytes()).unwrap();
}

/// Makes an offer of this size, and lists these entries.
fn offer(sender: &LyingSender, files: u64, bytes: u64, entries: &[Entry]) -> Liar {
    let mut liar = sender.offer(offer_of(files, bytes));
    entries.iter().for_each(|entry| liar.list(entry));
    liar.end_manifest();
    liar
}

/// Drops the connection after the receiver has accepted and sent its requests.
fn lose(mut liar: Liar) {
    liar.decided();
    liar.connection.close(wraith_transfer::close::STALLED, "gone");
}

/// Loses the sender of an offer of one small file that the receiver has accepted.
fn consented() -> (World, LyingSender, Process, PipeWriter) {
    let (world, sender, receiver, mut answers) = asked();
    let liar = offer(&sender, 1, 100, &[file("a", 6)]);
    answer(&mut answers, "y\n");
    lose(liar);
    (world, sender, receiver, answers)
}

#[test]
fn a_name_that_was_not_shown_is_left_out_after_a_reconnect_and_the_rest_arrives() {
    let (world, sender, receiver, mut answers) = asked();
    let shown = [file("a", 6), folder("t"), file("t/x", 6)];
    let liar = offer(&sender, 4, 100, &shown);
    answer(&mut answers, "y\n");
    lose(liar);
    let hostile = [
        file("a", 6),
        folder("evil"),
        file("evil/x", 6),
        file("late", 6),
        folder("t"),
        file("t/x", 6),
    ];
    let mut liar = offer(&sender, 4, 100, &hostile);
    liar.decided();
    liar.whole(0, b"gotcha");
    liar.whole(5, b"gotcha");
    liar.part_well();
    let received = receiver.finish();
    received.expect_error(10);
    let names = tree::names(&world.target());
    let is_state = |name: &std::path::PathBuf| name.extension().is_some_and(|e| e == "state");
    let names: Vec<_> = names.into_iter().filter(|name| !is_state(name)).collect();
    assert_eq!(names, ["a", "t"].map(std::path::PathBuf::from), "nothing that was not shown");
    assert_eq!(fs::read(world.target().join("t/x")).unwrap(), b"gotcha");
    for name in ["evil", "late"] {
        let note = received.all("note").find(|note| note["path"] == name).unwrap();
        assert!(note["message"].as_str().unwrap().contains("not part of the accepted offer"));
    }
    let blocked = received.all("file").filter(|file| file["status"] == "blocked").count();
    assert_eq!(blocked, 2);
}

#[test]
fn a_name_that_the_offer_did_not_say_is_left_out_however_slowly_the_sender_lists() {
    let (world, sender, mut receiver, mut answers) = asked();
    let names = Some(vec![b"a".to_vec().into(), b"t".to_vec().into()]);
    let mut liar = sender.offer(Offer { names, ..offer_of(3, 100) });
    // The question comes before any entry is listed.
    receiver.event("risky_entries");
    answer(&mut answers, "y\n");
    for entry in [file("a", 6), file("b", 6), folder("t"), file("t/x", 6)] {
        liar.list(&entry);
    }
    liar.end_manifest();
    liar.decided();
    liar.whole(0, b"gotcha");
    liar.whole(3, b"gotcha");
    liar.part_well();
    let received = receiver.finish();
    received.expect_error(10);
    assert!(received.stderr.contains("2 in total at the top level: a, t"), "{}", received.stderr);
    assert!(world.target().join("t/x").exists() && !world.target().join("b").exists());
}

#[test]
fn a_larger_offer_is_asked_about_again_and_a_refusal_holds() {
    let (world, sender, receiver, mut answers) = consented();
    // An offer of another size, which the consent does not cover.
    let more = [file("a", 6), file("b", 600)];
    let liar = offer(&sender, 2, 1000, &more);
    assert!(
        matches!(liar.told(), wraith_transport::CloseReason::Peer { code, .. } if code == wraith_transfer::close::POSTPONED)
    );
    let liar = offer(&sender, 2, 1000, &more);
    answer(&mut answers, "n\n");
    let received = receiver.finish();
    received.expect_error(4);
    assert!(received.stderr.matches("Accept?").count() == 2, "{}", received.stderr);
    assert!(
        matches!(liar.told(), wraith_transport::CloseReason::Peer { code, .. } if code == wraith_transfer::close::REFUSED)
    );
    assert!(
        tree::names(&world.target())
            .iter()
            .all(|name| name.to_string_lossy().starts_with(".wraith-"))
    );
}

#[test]
fn a_larger_offer_without_a_second_answer_is_not_accepted() {
    let (world, sender, receiver, answers) = consented();
    drop(answers);
    let liar = offer(&sender, 1, 1000, &[file("a", 600)]);
    drop(liar.told());
    let liar = offer(&sender, 1, 1000, &[file("a", 600)]);
    receiver.finish().expect_error(2);
    drop(liar);
    assert!(!world.target().join("a").exists());
}
