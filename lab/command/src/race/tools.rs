//! Programs that are not part of a usual system. They are searched on the path and in a folder of
//! the race, and installed there from their registries on request.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Folder of the programs, and whether missing ones may be installed.
#[derive(Debug)]
pub struct Tools {
    folder: PathBuf,
    install: bool,
}

impl Tools {
    pub fn new(folder: &Path, install: bool) -> Self {
        Self { folder: folder.into(), install }
    }

    /// n0's sendme.
    pub fn sendme(&self) -> Result<PathBuf> {
        self.find("sendme", &["bin/sendme"], |folder| {
            let mut cargo = Command::new("cargo");
            cargo.args(["install", "sendme", "--locked", "--root"]).arg(folder);
            cargo.env("CARGO_TARGET_DIR", folder.join("target"));
            run(&mut cargo)
        })
    }

    /// Returns the folder of magic-wormhole's programs, including its two servers.
    pub fn wormhole(&self) -> Result<PathBuf> {
        let twist = self.find("twist", &["wormhole/bin/twist"], |folder| {
            let environment = folder.join("wormhole");
            run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
            run(Command::new(environment.join("bin/pip")).args([
                "install",
                "--quiet",
                "magic-wormhole",
                "magic-wormhole-mailbox-server",
                "magic-wormhole-transit-relay",
            ]))
        })?;
        let folder = twist.parent().context("a program lies in a folder")?.to_owned();
        ensure!(folder.join("wormhole").is_file(), "twist has no wormhole beside it");
        Ok(folder)
    }

    fn find(
        &self,
        program: &str,
        places: &[&str],
        install: impl Fn(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&path).map(|folder| folder.join(program));
        let own = || places.iter().map(|place| self.folder.join(place));
        if let Some(found) = own().chain(on_path).find(|p| p.is_file()) {
            return Ok(found);
        }
        if !self.install {
            bail!("not installed; `--install` gets it from its registry");
        }
        std::fs::create_dir_all(&self.folder)?;
        install(&self.folder)?;
        own().find(|p| p.is_file()).context("it was installed, but is not where it should be")
    }
}

fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", format!("{command:?}").replace('"', ""));
    ensure!(command.status()?.success(), "installing failed");
    Ok(())
}
