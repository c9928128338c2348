//! Every way in which commands end, on both sides, for people and for scripts. `docs/endings.md`
//! lists them and is generated from the program's output (`WRAITH_BLESS=1`). People and scripts
//! must get the same sentence and the same exit code, and the README's table must have every code.

mod scene;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use scene::Scene;
use table::ALL;

/// Number of conditions that run in parallel; most of them only wait.
const AT_ONCE: usize = 6;

const HEAD: &str = "# How commands end\n\n\
    Each row has a condition, the side that reports it, its exit code and its first sentence. With \
    `--json` the sentence is the `message` of the `error` event. This file is generated: a test \
    runs every condition and compares.\n\n\
    | condition | side | exit | first sentence |\n|---|---|---|---|\n";

/// Runs one condition and returns its lines of the document.
fn play(number: usize) -> String {
    let (what, play) = ALL[number];
    let of = |json: bool| {
        let scene = Scene::new(json);
        let ends = play(&scene).into_iter();
        let ends = ends.map(|(side, end)| (side, end.exit, scene.without_chance(&end.sentence)));
        ends.collect::<Vec<_>>()
    };
    let (people, scripts) = (of(false), of(true));
    assert_eq!(people, scripts, "{what}: people and scripts get different results");
    let mut lines = String::new();
    for (side, exit, sentence) in people {
        let sentence = sentence.replace('|', "\\|");
        writeln!(lines, "| {what} | {side} | {exit} | {sentence} |").unwrap();
    }
    lines
}

#[test]
fn every_ending_is_as_documented_for_people_and_for_scripts() {
    let next = AtomicUsize::new(0);
    let played = Mutex::new(vec![String::new(); ALL.len()]);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= ALL.len() {
                        break;
                    }
                    let lines = play(number);
                    played.lock().unwrap()[number] = lines;
                }
            });
        }
    });
    let text = HEAD.to_owned() + &played.into_inner().unwrap().concat();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/endings.md");
    if std::env::var_os("WRAITH_BLESS").is_some() {
        fs::write(&docs, &text).unwrap();
    }
    let documented = fs::read_to_string(&docs).unwrap();
    for (now, then) in text.lines().zip(documented.lines()) {
        assert_eq!(now, then, "if this is intended, write docs/endings.md with WRAITH_BLESS=1");
    }
    assert_eq!(text, documented);
    check_guide(&text);
}

/// Checks that the README's exit codes are exactly those of the conditions.
fn check_guide(endings: &str) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/GUIDE.md");
    let guide = fs::read_to_string(guide).unwrap();
    let explained = guide.split("| exit | meaning |").nth(1).expect("the table of exit codes");
    let rows =
        explained.lines().skip(1).take_while(|line| line.is_empty() || line.starts_with('|'));
    let cells = rows.filter_map(|line| line.split('|').nth(1));
    let codes = |cell: &str| cell.split(',').filter_map(|code| code.trim().parse().ok()).collect();
    let explained: BTreeSet<i32> = cells.flat_map(|cell| -> Vec<i32> { codes(cell) }).collect();
    let played = endings.lines().filter_map(|line| line.split('|').nth(3)?.trim().parse().ok());
    let mut played: BTreeSet<i32> = played.collect();
    // A success has no sentence.
    played.insert(0);
    assert_eq!(played, explained);
}
