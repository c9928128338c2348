//! Names with control characters are stored unchanged on the disk, and escaped on the screen.

use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::thread;

use crate::lying::sender::{LyingSender, entry, offer_of};
use crate::support::{World, tree};
use wraith_files::Kind;
use wraith_transfer::Offer;

const NAMES: [&str; 4] =
    ["bell\u{7} clear\u{1b}[2J", "line\nwraith: all is well", "\u{202e}fdp.exe", "cr\rlf\u{9b}2J"];

/// Returns the names in the order that a manifest needs.
fn sorted() -> Vec<&'static [u8]> {
    let mut names: Vec<&[u8]> = NAMES.iter().map(|name| name.as_bytes()).collect();
    names.push(b"not utf-8 \xff\x1b");
    names.sort();
    names
}

/// Sends the names. Every second file is reported as changed, so that warnings show names too.
fn send(sender: LyingSender) {
    let name = "\u{1b}]0;title\u{7}\u{202e}gift\r".into();
    let mut liar = sender.offer(Offer { name, ..offer_of(9, 100) });
    for name in sorted() {
        liar.list(&entry(name, Kind::File { size: 6, sparse: None }));
    }
    liar.end_manifest();
    liar.decided();
    for number in 0..liar.entries as u32 {
        match number % 2 {
            0 => liar.whole(number, b"gotcha"),
            _ => {
                let ending = wraith_transfer::record::Ending::Changed;
                let root = [0; 32];
                let end =
                    wraith_transfer::record::Header::End { entry: number, ending, chunks: 0, root };
                liar.record(end, b"");
            }
        }
    }
    liar.part_well();
}

#[test]
fn no_name_reaches_the_terminal_as_it_is() {
    let world = World::new();
    let sender = LyingSender::listen();
    let ticket = sender.ticket();
    let sending = thread::spawn(move || send(sender));
    let mut command = world.wraith("receiver");
    command.args(["receive", "-o"]).arg(world.target()).arg(&ticket);
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"y\n").unwrap();
    let output = command.stdin(Stdio::from(reader)).output().unwrap();
    sending.join().unwrap();
    assert_eq!(output.status.code(), Some(10));
    for said in [&output.stderr, &output.stdout] {
        let said = std::str::from_utf8(said).unwrap();
        let hidden = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!said.contains(hidden), "{said:?}");
        assert!(!said.contains("\nwraith: all is well"), "{said}");
    }
    let arrived = tree::names(&world.target());
    let expected: Vec<_> = sorted().into_iter().step_by(2).collect();
    let arrived: Vec<_> = arrived
        .iter()
        .map(|name| name.as_os_str().as_bytes())
        .filter(|name| !name.starts_with(b".wraith-"))
        .collect();
    assert_eq!(arrived, expected, "on the disk the names are what they are");
}

#[test]
fn events_for_programs_hold_escaped_names_in_valid_json() {
    let world = World::new();
    let sender = LyingSender::listen();
    let receiver = world.receive(&sender.ticket());
    let sending = thread::spawn(move || send(sender));
    let outcome = receiver.finish();
    sending.join().unwrap();
    outcome.expect_error(10);
    assert_eq!(outcome.all("file").count(), NAMES.len() + 1);
    for event in outcome.events.iter() {
        for key in ["path", "name", "message"] {
            let text = event[key].as_str().unwrap_or_default();
            assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{event}");
        }
    }
}
