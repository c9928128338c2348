//! `cargo xtask recording`: records a first transfer between two people, with the real program at
//! two real terminals. The recording goes into `docs/first-transfer.svg` as an animation, and into
//! the README as text.
//!
//! Invariant: the README and the last frame of the animation show the output of today's program,
//! except for text that differs between runs ([`mask`]). `cargo xtask test` compares them.

mod mask;
mod svg;
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo;
use mask::Masks;
use terminal::Terminal;

const PICTURE: &str = "docs/first-transfer.svg";
const DOCUMENT: &str = "README.md";
const BEGIN: &str = "<!-- made by cargo xtask recording: begin -->\n";
const END: &str = "<!-- made by cargo xtask recording: end -->\n";

/// Size of both terminals.
const COLUMNS: u16 = 90;
const ROWS: u16 = 14;
/// Size of the sent file: large enough that its progress is visible.
const FILM_BYTES: usize = 400 << 20;
/// Time after which the recording counts as hung.
const HANG: Duration = Duration::from_secs(180);
/// Interval between two frames.
const PACE: Duration = Duration::from_millis(40);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Record this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Change nothing; fail if the picture or the README differs from today's program
    #[arg(long)]
    check: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let program = match &args.program {
        Some(program) => fs::canonicalize(program)?,
        None => cargo::build_release()?,
    };
    let recording = record(&program)?;
    if args.check { check(&recording) } else { write(&recording) }
}

/// Compares the committed recording with the test build of the program.
pub fn smoke_test() -> Result<()> {
    check(&record(&cargo::build_debug()?)?)
}

/// Both terminals at one moment.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Time since the beginning.
    pub at: Duration,
    pub alice: terminal::Screen,
    pub bob: terminal::Screen,
}

/// All frames; the last one shows the end.
#[derive(Debug)]
struct Recording {
    frames: Vec<Frame>,
}

impl Recording {
    /// Returns the final content of both terminals, as text.
    fn transcript(&self) -> String {
        let last = self.frames.last().expect("there is a frame");
        format!("{}\n\n{}\n", last.alice.text(), last.bob.text())
    }
}

fn check(recording: &Recording) -> Result<()> {
    let again = "run cargo xtask recording";
    let today = recording.transcript();
    let picture = svg::transcript(&read(PICTURE)?).context("the picture has no transcript")?;
    for (name, shown) in [(PICTURE, picture), (DOCUMENT, transcript_of(&read(DOCUMENT)?)?)] {
        let same = mask::comparable(&shown) == mask::comparable(&today);
        ensure!(same, "{name} shows\n{shown}\nand not\n{today}\n{again}");
    }
    println!("{DOCUMENT} and {PICTURE} show today's output of the program.");
    Ok(())
}

fn transcript_of(document: &str) -> Result<String> {
    let (_, rest) = document.split_once(BEGIN).context("the README has no first mark")?;
    let (inside, _) = rest.split_once(END).context("the README has no second mark")?;
    let text = inside.strip_prefix("```console\n").and_then(|text| text.strip_suffix("```\n"));
    Ok(text.context("the README has no transcript between the marks")?.to_owned())
}

fn write(recording: &Recording) -> Result<()> {
    let document = with_transcript(&read(DOCUMENT)?, &recording.transcript())?;
    fs::write(cargo::root().join(DOCUMENT), document)?;
    let transcript = recording.transcript();
    fs::write(cargo::root().join(PICTURE), svg::picture(&recording.frames, &transcript))?;
    println!("{} frames are in {PICTURE}, and the end is in {DOCUMENT}.", recording.frames.len());
    Ok(())
}

fn read(name: &str) -> Result<String> {
    fs::read_to_string(cargo::root().join(name)).with_context(|| format!("cannot read {name}"))
}

fn with_transcript(document: &str, transcript: &str) -> Result<String> {
    let (before, rest) = document.split_once(BEGIN).context("the README has no first mark")?;
    let (_, after) = rest.split_once(END).context("the README has no second mark")?;
    Ok(format!("{before}{BEGIN}```console\n{transcript}```\n{END}{after}"))
}

/// Two people on one machine, which find each other on its loopback as two machines do on their
/// network.
struct RecordingSession {
    folder: tempfile::TempDir,
    program: PathBuf,
    start: Instant,
    frames: Vec<Frame>,
    masks: Masks,
}

fn record(program: &Path) -> Result<Recording> {
    let folder = tempfile::tempdir()?;
    for name in ["alice", "bob"] {
        fs::create_dir_all(folder.path().join(name))?;
    }
    fs::write(folder.path().join("alice/film.mov"), noise(FILM_BYTES))?;
    let program = program.to_owned();
    let mut session = RecordingSession {
        folder,
        program,
        start: Instant::now(),
        frames: Vec::new(),
        masks: Masks::default(),
    };
    session.record()?;
    Ok(Recording { frames: session.frames })
}

impl RecordingSession {
    fn record(&mut self) -> Result<()> {
        let (mut alice, mut bob) = (Terminal::new("alice"), Terminal::new("bob"));
        self.type_in(&mut alice, "wraith send film.mov", Person::Alice, &bob);
        self.start(&mut alice, &["send", "film.mov"])?;
        self.until(&mut alice, &mut bob, "Ctrl-C stops.")?;
        let code = alice.word_after("wraith receive ").context("no code on the screen")?;
        self.masks.replace(&code, "7-crater-lemon");
        // The frames so far show the real code.
        for frame in &mut self.frames {
            frame.alice = self.masks.apply(&frame.alice);
        }
        self.type_in(&mut bob, "wraith 7-crater-lemon", Person::Bob, &alice);
        self.start(&mut bob, &[code.as_str()])?;
        self.until(&mut alice, &mut bob, "Accept?")?;
        bob.press("y\n")?;
        self.until_all(&mut alice, &mut bob, "or never:")?;
        alice.press("\n")?;
        bob.press("\n")?;
        while alice.is_running() || bob.is_running() {
            self.wait(&mut alice, &mut bob)?;
        }
        ensure!(alice.succeeded() && bob.succeeded(), "{}\n{}", alice.all(), bob.all());
        let (sent, got) = (self.path("alice/film.mov"), self.path("bob/film.mov"));
        ensure!(fs::read(sent)? == fs::read(got)?, "another film arrived");
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the program at a terminal, in the folder of that person.
    fn start(&self, terminal: &mut Terminal, words: &[&str]) -> Result<()> {
        let home = self.path(terminal.name());
        let mut command = std::process::Command::new(&self.program);
        command.args(words).current_dir(&home).env_clear();
        command.env("HOME", &home).env("WRAITH_HOME", home.join(".wraith")).envs(crate::OFFLINE);
        // Nothing leaves the machine.
        command.env("WRAITH_LAN", "lo").env("TERM", "xterm-256color");
        terminal.start(command)
    }

    /// Types a command letter by letter; that takes no real time.
    fn type_in(&mut self, terminal: &mut Terminal, words: &str, side: Person, other: &Terminal) {
        let prompt = format!("{}$ ", terminal.name());
        terminal.show(&prompt);
        for letter in words.chars() {
            terminal.show(letter.encode_utf8(&mut [0; 4]));
            self.start -= Duration::from_millis(60);
            match side {
                Person::Alice => self.capture_frame(terminal, other),
                Person::Bob => self.capture_frame(other, terminal),
            }
        }
        self.start -= Duration::from_millis(400);
        terminal.show("\r\n");
    }

    fn until(&mut self, alice: &mut Terminal, bob: &mut Terminal, text: &str) -> Result<()> {
        while !alice.all().contains(text) && !bob.all().contains(text) {
            self.wait(alice, bob)?;
        }
        // A person takes about this long to read the text.
        self.start -= Duration::from_millis(900);
        Ok(())
    }

    /// Waits until both terminals show the text.
    fn until_all(&mut self, alice: &mut Terminal, bob: &mut Terminal, text: &str) -> Result<()> {
        self.until(alice, bob, text)?;
        while !alice.all().contains(text) || !bob.all().contains(text) {
            self.wait(alice, bob)?;
        }
        Ok(())
    }

    fn wait(&mut self, alice: &mut Terminal, bob: &mut Terminal) -> Result<()> {
        alice.take(PACE);
        bob.take(PACE);
        self.capture_frame(alice, bob);
        if alice.waited() > HANG && bob.waited() > HANG {
            bail!("it hangs:\n{}\n{}", alice.all(), bob.all());
        }
        Ok(())
    }

    /// Adds a frame if a terminal has changed since the last one.
    fn capture_frame(&mut self, alice: &Terminal, bob: &Terminal) {
        let (alice, bob) = (self.masks.apply(&alice.screen()), self.masks.apply(&bob.screen()));
        let same = |frame: &Frame| frame.alice == alice && frame.bob == bob;
        if !self.frames.last().is_some_and(same) {
            self.frames.push(Frame { at: self.start.elapsed(), alice, bob });
        }
    }
}

#[derive(Clone, Copy)]
enum Person {
    Alice,
    Bob,
}

/// Incompressible bytes (SplitMix64).
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    let mut state = 1_u64;
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
