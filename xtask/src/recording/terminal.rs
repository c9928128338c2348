//! A program at a pseudo-terminal, and the content of its screen.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{COLUMNS, ROWS};

/// Text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledText {
    pub text: String,
    pub color: Color,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    #[default]
    Plain,
    Dim,
    Accent,
}

/// Lines from the top, without empty ones at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen(pub Vec<Vec<StyledText>>);

impl Screen {
    pub fn text(&self) -> String {
        let line = |pieces: &Vec<StyledText>| {
            pieces.iter().map(|piece| piece.text.as_str()).collect::<String>().trim_end().to_owned()
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The terminal of one person.
pub struct Terminal {
    name: &'static str,
    parser: vt100::Parser,
    /// All output, which [`Self::all`] returns for searches.
    written: Vec<u8>,
    process: Option<Process>,
    succeeded: bool,
    heard: Instant,
}

struct Process {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    pub fn new(name: &'static str) -> Self {
        let size = |cells| NonZero::new(cells).expect("a screen has a size");
        let parser = vt100::Parser::new(size(ROWS), size(COLUMNS), 0);
        let (written, process) = (Vec::new(), None);
        Self { name, parser, written, process, succeeded: false, heard: Instant::now() }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Shows text that no program wrote.
    pub fn show(&mut self, text: &str) {
        self.parser.process(text.as_bytes());
    }

    pub fn start(&mut self, mut command: Command) -> Result<()> {
        let (master, slave) = open()?;
        command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
        let child = command.spawn()?;
        // `command` holds the terminal too; its end is not visible while any process or value holds
        // it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut screen = File::from(master.try_clone()?);
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        self.heard = Instant::now();
        self.process = Some(Process { child, keyboard: File::from(master), output });
        Ok(())
    }

    pub fn press(&mut self, keys: &str) -> Result<()> {
        if let Some(process) = &mut self.process {
            process.keyboard.write_all(keys.as_bytes())?;
        }
        Ok(())
    }

    /// Reads the program's output for up to `patience`.
    pub fn take(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while let Some(process) = &mut self.process {
            let left = deadline.saturating_duration_since(Instant::now());
            match process.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.parser.process(&bytes);
                    self.written.extend(bytes);
                    self.heard = Instant::now();
                }
                Err(mpsc::RecvTimeoutError::Timeout) => return,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    self.succeeded = process.child.wait().is_ok_and(|status| status.success());
                    self.process = None;
                }
            }
        }
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub fn succeeded(&self) -> bool {
        self.succeeded
    }

    /// Time since the last output.
    pub fn waited(&self) -> Duration {
        self.heard.elapsed()
    }

    /// Returns all output of the program.
    pub fn all(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// Returns the word that follows this text in the output.
    pub fn word_after(&self, text: &str) -> Option<String> {
        let all = self.all();
        let (_, rest) = all.split_once(text)?;
        rest.split_whitespace().next().map(str::to_owned)
    }

    pub fn screen(&self) -> Screen {
        let screen = self.parser.screen();
        let mut lines: Vec<_> = (0..ROWS).map(|row| line(screen, row)).collect();
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        Screen(lines)
    }
}

fn line(screen: &vt100::Screen, row: u16) -> Vec<StyledText> {
    let mut pieces: Vec<StyledText> = Vec::new();
    for cell in (0..COLUMNS).filter_map(|column| screen.cell(row, column)) {
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let color = match cell.fgcolor() {
            _ if cell.dim() => Color::Dim,
            vt100::Color::Default => Color::Plain,
            _ => Color::Accent,
        };
        match pieces.last_mut() {
            Some(last) if last.color == color => last.text.push_str(text),
            _ => pieces.push(StyledText { text: text.to_owned(), color }),
        }
    }
    if let Some(last) = pieces.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    pieces.retain(|piece| !piece.text.is_empty());
    pieces
}

fn open() -> Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    tcsetwinsize(&master, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    Ok((master, slave))
}
