//! A sender whose manifest contains unsafe names. The receiver stops with exit code 11 and a
//! message, and nothing outside the target is touched.

use std::thread;

use crate::lying;
use crate::lying::canaries::Canaries;
use crate::lying::sender::{Liar, LyingSender, file, folder, link, offer_of, raw_file};
use crate::support::{Outcome, World, tree};

/// Runs `lie` as a sender against a receiver. Returns the receiver's outcome.
fn deceive(world: &World, lie: impl FnOnce(&mut Liar) + Send + 'static) -> Outcome {
    let sender = LyingSender::listen();
    let receiver = world.receive_with(&sender.ticket(), &["--reconnect", "0"]);
    let lying = thread::spawn(move || {
        let mut liar = sender.offer(offer_of(10, 1000));
        lie(&mut liar);
        liar.end_manifest();
        // Sends every requested file until the receiver closes.
        while let Some(want) = liar.want() {
            for entry in want.whole.iter().flat_map(|span| span.first..span.first + span.count) {
                liar.whole(entry as u32, b"gotcha");
            }
        }
    });
    let outcome = receiver.finish();
    lying.join().unwrap();
    outcome
}

#[track_caller]
fn expect_refused(world: &World, outcome: &Outcome, words: &str) {
    let error = outcome.expect_error(11);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("unsafe name") && message.contains(words), "{message}");
    let visible = |c: char| !c.is_control() && c != '\u{202e}';
    assert!(message.chars().all(visible), "{message:?}");
    assert!(tree::leftovers(&world.target()).iter().all(|path| path.ends_with(state_file())));
}

/// Returns the name of the list of completed files, which remains after a failure.
fn state_file() -> String {
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", &lying::SECRET);
    let hex: String = id[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!(".wraith-{hex}.state")
}

#[test]
fn names_that_lead_out_of_the_target_are_refused_and_shown_escaped() {
    let long = [b"d/", &[b'n'; 300][..]].concat();
    let cases: [(&[u8], &str); 11] = [
        (b"../x", ".."),
        (b"..", ".."),
        (b"a/../../x", ".."),
        (b"/x", "absolute"),
        (b"/proc/self/cwd/x", "absolute"),
        (b"nul\0", "zero byte"),
        (&long, "too long"),
        (b"a//x", "empty"),
        (b"", "empty"),
        (b"\x1b[2J\xe2\x80\xae/../x", r"\x1b[2J\u{202e}"),
        (b".x.wraith-part", "reserved"),
    ];
    for (name, words) in cases {
        let world = World::new();
        let canaries = Canaries::around(&world);
        let outcome = deceive(&world, {
            let entry = raw_file(name, 6);
            move |liar| liar.list_raw(&entry)
        });
        expect_refused(&world, &outcome, words);
        canaries.expect_untouched();
    }
}

#[test]
fn a_repeated_path_or_one_below_a_file_is_refused() {
    let cases = [
        [file("a", 6), file("a", 6)],
        [file("a", 6), folder("a")],
        [folder("a"), file("a", 6)],
        [folder("a"), folder("a")],
        [file("b", 6), file("a", 6)],
        [file("a", 6), file("a/x", 6)],
        [folder("a"), file("b/x", 6)],
        [folder("a"), file("a/b/x", 6)],
        [link("a", b"../outside"), file("a/x", 6)],
        [link("a", b"../outside"), folder("a/folder")],
        [folder("a"), link("a", b"../outside")],
    ];
    for entries in cases {
        let world = World::new();
        let canaries = Canaries::around(&world);
        let outcome = deceive(&world, move |liar| entries.iter().for_each(|e| liar.list(e)));
        expect_refused(&world, &outcome, "");
        canaries.expect_untouched();
    }
}
