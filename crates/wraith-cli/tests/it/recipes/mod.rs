//! The recipes of the documents run as written.
//!
//! Every command of a shell session in [`DOCUMENTS`] runs, or is in [`NOT_RUN`] with the reason. So
//! a new block runs without a change here, or fails. [`SCENES`] has the needs of each section.

mod blocks;
mod runners;
mod stage;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;

use mainline::Testnet;

use crate::documentation::document;
use crate::support::{World, lan, skipped};
use blocks::{Block, commands, without_comment};
use stage::Stage;

const DOCUMENTS: [&str; 4] =
    ["README.md", "docs/GUIDE.md", "docs/CRYPTO.md", "crates/wraith-cli/README.md"];
/// Recipes at the same time: most of them wait for a peer.
const AT_ONCE: usize = 4;
/// Nodes of the DHT in a recipe.
const NODES: usize = 20;

/// The needs of a section.
struct Scene {
    document: &'static str,
    section: &'static str,
    /// Commands before the block.
    before: &'static str,
    /// Commands directly after the block's command that begins like this.
    after_command: (&'static str, &'static str),
    /// Commands after the transfers of the block.
    after: &'static str,
    /// The machine of `NODEID`.
    node_id_of: &'static str,
    has_dht: bool,
}

const PLAIN: Scene = Scene {
    document: "",
    section: "",
    before: "",
    after_command: ("", ""),
    after: "",
    node_id_of: "",
    has_dht: false,
};

/// Each side has saved the other.
const FRIENDS: &str = "\
anna$ wraith contact add bob NODEID:bob
bob$ wraith contact add anna NODEID:anna
";

const SCENES: &[Scene] = &[
    Scene {
        section: "Before you accept",
        before: "\
bob$ mkdir -p Downloads/holiday
bob$ echo other > Downloads/holiday/a.txt
bob$ echo other > Downloads/holiday/b.txt
alice$ wraith send holiday/
",
        ..PLAIN
    },
    Scene {
        section: "Conflicts",
        before: "bob$ echo other > film.mov\n",
        after: "bob$ test -e 'film (1).mov'\n",
        ..PLAIN
    },
    Scene { document: "docs/GUIDE.md", section: "Across the internet", has_dht: true, ..PLAIN },
    Scene { section: "The DHT and six words", has_dht: true, ..PLAIN },
    Scene { section: "Proxies", before: "server$ wraith relay\n", ..PLAIN },
    Scene {
        section: "Several receivers, or a pipe",
        after: "bob$ test -e photos/a.txt\n",
        ..PLAIN
    },
    Scene { section: "Pipes", after: "bob$ test -e photos/a.txt\n", ..PLAIN },
    Scene {
        section: "Contacts",
        before: FRIENDS,
        after: "anna$ test -e Inbox/film.mov\n",
        ..PLAIN
    },
    Scene {
        section: "Contacts and listening",
        before: FRIENDS,
        after: "anna$ test -e Inbox/film.mov\n",
        ..PLAIN
    },
    Scene { section: "Keep a contact", node_id_of: "anna", ..PLAIN },
    Scene {
        section: "verify",
        before: "\
alice$ wraith send film.mov
bob$ wraith 7-crater-lemon
alice$ wraith send photos
bob$ wraith 7-crater-lemon -o Pictures
alice$ wraith send notes.txt
bob$ wraith 7-crater-lemon -o OLD
bob$ mv OLD NEW
",
        ..PLAIN
    },
    Scene {
        section: "Receipts",
        after_command: (
            "wraith send --receipt",
            "bob$ wraith 7-crater-lemon\ncarol$ cp ../alice/photos.receipt .\n",
        ),
        node_id_of: "bob",
        ..PLAIN
    },
    Scene {
        document: "docs/CRYPTO.md",
        section: "Algorithms on the command line",
        after: "\
here$ cmp film.mov film2.mov
here$ cmp secret secret2
here$ wraith crypto dec -p photos.enc | tar t
",
        ..PLAIN
    },
];

/// Commands that no test runs: the beginning of the command, and the reason. Only their options are
/// checked, as far as they are a command of the program.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo run --release -- demo", "it compiles a release build; `demo.rs` runs the demo"),
    ("cargo install", "it compiles a release build, and installs it"),
    ("cargo xtask package", "`cargo xtask test` runs it"),
    (
        "sudo apt install ./target/package/",
        "it installs a package, which `cargo xtask package` tries",
    ),
    ("tar -xzf target/package/", "`cargo xtask package` unpacks the archive and tries it"),
    ("wraith doctor --relay server.example --lifetime", "it takes three minutes"),
];

fn reason(line: &str) -> Option<&'static str> {
    NOT_RUN.iter().find(|(begin, _)| line.starts_with(begin)).map(|(_, reason)| *reason)
}

fn sessions(name: &str) -> Vec<Block> {
    let blocks = blocks::blocks(name, &document(name));
    blocks.into_iter().filter(|block| block.language == "console").collect()
}

/// Runs all shell sessions of a document. Fails with the messages of all those that fail.
fn run_all(name: &'static str) {
    let queue: Mutex<VecDeque<Block>> = Mutex::new(sessions(name).into());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                while let Some(block) = next() {
                    let place = format!("{name}:{}", block.line);
                    if catch_unwind(AssertUnwindSafe(|| run(&block))).is_err() {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(place);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failed.is_empty(), "failed: {failed:?}");
}

/// Runs one shell session in a network of its own.
fn run(block: &Block) {
    let _network = lan::own_network();
    let is_of = |scene: &&Scene| {
        scene.section == block.section
            && (scene.document.is_empty() || scene.document == block.document)
    };
    let scene = SCENES.iter().find(is_of).unwrap_or(&PLAIN);
    let session = commands(&block.text).unwrap();
    let all = format!("{}{}", scene.before, block.text);
    let testnet = scene.has_dht.then(|| Testnet::builder(NODES).build().unwrap());
    // A recipe with a server must work without the local network.
    let lan = if all.contains("server$") { "off" } else { "lo" };
    let mut environment = vec![("WRAITH_LAN".to_owned(), lan.to_owned())];
    if let Some(testnet) = &testnet {
        environment.push(("WRAITH_DHT".to_owned(), "on".to_owned()));
        environment.push(("WRAITH_DHT_BOOTSTRAP".to_owned(), testnet.bootstrap[0].clone()));
    }
    let mut stage = Stage::new(environment, scene.node_id_of);
    let extra = |stage: &mut Stage, session: &str| {
        for command in commands(session).unwrap() {
            stage.run(&command.machine, &command.line, &[]);
        }
    };
    extra(&mut stage, scene.before);
    for command in &session {
        if let Some(_reason) = reason(&command.line) {
            check_options(&command.line);
            continue;
        }
        if command.line.starts_with("openssl ") && !is_installed("openssl") {
            skipped("openssl is not installed");
            continue;
        }
        stage.run(&command.machine, &command.line, &command.output);
        let (begin, session) = scene.after_command;
        if !begin.is_empty() && command.line.starts_with(begin) {
            extra(&mut stage, session);
        }
    }
    stage.finish();
    extra(&mut stage, scene.after);
}

/// Checks that the program knows the options of a command that is not run.
fn check_options(line: &str) {
    let line = without_comment(line);
    if let Some(package) = line.strip_prefix("cargo install ") {
        assert_eq!(package, "--path crates/wraith-cli", "no registry has the package");
    }
    let words = line.strip_prefix("cargo run --release -- ").or(line.strip_prefix("wraith "));
    let Some(words) = words else { return };
    let output = World::new().wraith("here").args(words.split(' ')).arg("--help").output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn is_installed(program: &str) -> bool {
    std::process::Command::new(program).arg("version").output().is_ok()
}

#[test]
fn the_recipes_of_the_readme_run() {
    run_all("README.md");
    run_all("crates/wraith-cli/README.md");
}

#[test]
fn the_recipes_of_the_guide_run() {
    run_all("docs/GUIDE.md");
}

#[test]
fn the_recipes_of_wraith_crypto_run() {
    run_all("docs/CRYPTO.md");
}

#[test]
fn the_config_file_of_the_guide_sets_what_it_shows() {
    let blocks = blocks::blocks("docs/GUIDE.md", &document("docs/GUIDE.md"));
    let file = blocks.iter().find(|block| block.language == "toml").unwrap();
    let world = World::new();
    std::fs::create_dir(world.path("home-here")).unwrap();
    std::fs::write(world.path("home-here/config.toml"), &file.text).unwrap();
    let mut section = String::new();
    for line in without_comments(&file.text) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = format!("{name}.");
            continue;
        }
        let (key, value) = line.split_once(" = ").unwrap();
        let words = ["config", "get", &format!("{section}{key}")];
        let output = world.wraith("here").env_remove("WRAITH_LAN").args(words).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(shown.trim(), value.trim_matches('"'), "{line}");
    }
}

/// Returns the lines of a config file that set something.
fn without_comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(without_comment).filter(|line| !line.is_empty())
}

#[test]
fn every_exception_and_every_scene_is_of_a_recipe() {
    let blocks: Vec<Block> = DOCUMENTS.iter().flat_map(|name| sessions(name)).collect();
    let lines: Vec<_> = blocks.iter().flat_map(|block| commands(&block.text).unwrap()).collect();
    for (begin, _) in NOT_RUN {
        let is_used = lines.iter().any(|command| command.line.starts_with(begin));
        assert!(is_used, "no document has the command {begin:?}");
    }
    for scene in SCENES {
        let is_used = blocks.iter().any(|block| block.section == scene.section);
        assert!(is_used, "no document has a recipe in the section {:?}", scene.section);
        let begin = scene.after_command.0;
        assert!(lines.iter().any(|command| command.line.starts_with(begin)), "{begin:?}");
    }
}
