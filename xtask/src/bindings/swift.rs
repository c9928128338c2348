//! Swift: compiles and tests the bindings if there is a compiler; otherwise only checks the
//! generated files, and the commands of the README that need no compiler.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Built, folder, made, readme, scratch};
use crate::cargo;

/// Generated files: the source, the C header it uses, and the module map of that header.
const FILES: [&str; 3] = ["Wraith.swift", "WraithFFI.h", "WraithFFI.modulemap"];
const README: &str = "bindings/swift/README.md";

pub fn test(built: &Built, sources: &Path) -> Result<()> {
    look_at(built, sources)?;
    let mut script = Command::new(folder("swift").join("generate.sh"));
    cargo::run(script.arg(sources).arg(&built.libraries))?;
    // The example of the README becomes a file of the tests.
    let example = folder("swift").join("Tests/WraithTests/Readme.swift");
    fs::write(example, readme::block(README, "swift")?)?;
    let mut test = Command::new("swift");
    test.args(["test", "--build-path"]).arg(scratch("swift").join("build"));
    test.env("LD_LIBRARY_PATH", &built.libraries).env("DYLD_LIBRARY_PATH", &built.libraries);
    cargo::run(test.current_dir(folder("swift")))
}

/// Checks that every file was generated, and the README.
pub fn look_at(built: &Built, sources: &Path) -> Result<()> {
    for file in FILES {
        let is_there = fs::metadata(sources.join(file)).is_ok_and(|facts| facts.len() > 0);
        ensure!(is_there, "the generator made no {file}");
    }
    has_calls(&fs::read_to_string(sources.join("Wraith.swift"))?)?;
    run_commands(built)
}

/// Checks that the generated source has the functions and labels of the README's example, and of
/// the example echo.
fn has_calls(source: &str) -> Result<()> {
    let source: String = source.split_whitespace().collect();
    let echo = fs::read_to_string(folder("swift").join("examples/echo/echo.swift"))?;
    for (call, declaration) in [
        (".serve(callers: callers, options: ", "funcserve(callers:Callers,options:ServiceOptions)"),
        (".contacts(name: \"", "casecontacts("),
        (".connect(to: to, options: ", "funcconnect(to:ServiceAddress,options:ConnectOptions)"),
        (".source(source: ", "casesource("),
        (".contact(contact: \"friend\", service: ", "casecontact("),
        (".accept()", "funcaccept()asyncthrows->Connection?"),
        (".openStream()", "funcopenStream()asyncthrows->ConnectionStream"),
        (".acceptStream()", "funcacceptStream()asyncthrows->ConnectionStream"),
        (".write(bytes: ", "funcwrite(bytes:Data)asyncthrows"),
        (".readToEnd(max: ", "funcreadToEnd(max:UInt64)asyncthrows->Data"),
        (".finish()", "funcfinish()throws"),
        (".closeWith(code: 0x100, reason: ", "funccloseWith(code:UInt64,reason:String)"),
        (".closed()", "funcclosed()async->CloseReason"),
    ] {
        ensure!(echo.contains(call), "the example echo has no {call}");
        ensure!(source.contains(declaration), "the generated source has no {declaration}");
    }
    let example = readme::block(README, "swift")?;
    for (call, declaration) in [
        ("Node(options: ", "init(options:NodeOptions)"),
        (
            ".offer(what: .paths(paths: ",
            "funcoffer(what:Content,to:Recipient,options:OfferOptions)",
        ),
        (".paths(paths: [path])", "paths:[String]"),
        (
            ".fetch(source: code, into: ",
            "funcfetch(source:String,into:Target,options:FetchOptions)",
        ),
        (".folder(path: \"", "casefolder("),
        (".accept(options: ", "funcaccept(options:AcceptOptions)"),
        (".nextEvent()", "funcnextEvent()"),
        (".finished()", "funcfinished()"),
    ] {
        ensure!(example.contains(call), "the example in {README} has no {call}");
        ensure!(source.contains(declaration), "the generated source has no {declaration}");
    }
    Ok(())
}

/// Runs the README's commands between the build and `swift test`: those that generate the sources,
/// and `generate.sh` in a copy of its folder.
fn run_commands(built: &Built) -> Result<()> {
    let commands = readme::commands(README)?;
    let starting = |begin: &str| {
        let command = commands.iter().find(|command| command.starts_with(begin));
        command.with_context(|| format!("{README} has no command {begin}"))
    };
    let copy = scratch("swift").join("recipe");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    made(&copy.join("bindings/swift"))?;
    made(&copy.join("target/bindings/swift"))?;
    made(&copy.join("target/debug"))?;
    symlink(&built.libraries, copy.join("target/ffi"))?;
    symlink(&built.generator, copy.join("target/debug/wraith-generate"))?;
    let script = "bindings/swift/generate.sh";
    fs::copy(cargo::root().join(script), copy.join(script))?;
    // The generator reads the workspace.
    let generate = starting("target/debug/wraith-generate ")?;
    let target = format!("{}/", copy.join("target").display());
    let generate = generate.replace("target/", &target);
    cargo::run(Command::new("sh").args(["-ec", &generate]).current_dir(cargo::root()))?;
    let place = starting(script)?;
    cargo::run(Command::new("sh").args(["-ec", place]).current_dir(&copy))?;
    for file in ["Wraith/Wraith.swift", "WraithFFI/WraithFFI.h", "WraithFFI/module.modulemap"] {
        let is_there = copy.join("bindings/swift/Sources").join(file).exists();
        ensure!(is_there, "{script} puts no file at Sources/{file}");
    }
    // The copy has a library of some hundred megabytes.
    fs::remove_dir_all(&copy)?;
    Ok(())
}
