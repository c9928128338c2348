//! `cargo lab grid`: runs the grid and writes the results.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use wraith_grid::cell::Cell;
use wraith_grid::cells;
use wraith_grid::compare::summary;
use wraith_grid::contender::Contender;
use wraith_grid::floors;
use wraith_grid::heat_map::svg;
use wraith_grid::repeat::repeat_close;
use wraith_grid::report::{Row, csv, parse, table};
use wraith_grid::run::{Figures, run_all};

/// The scenario grid: goodput, queue delay, losses and fairness over simulated links
#[derive(Debug, Parser)]
#[command(name = "cargo lab grid")]
struct Args {
    /// Run only the few cheap cells that are tested with every change
    #[arg(long)]
    small: bool,
    /// Run only the small cells with both of wraith's controllers; fail if one is below its floor
    /// in the repository
    #[arg(long, conflicts_with_all = ["small", "peculiar", "only", "max_mbit", "contender", "seed", "out", "reuse"])]
    ci: bool,
    /// Write the floors anew
    #[arg(long, requires = "ci")]
    bless: bool,
    /// Run only the special conditions and pairs of flows, without the product of rates, round
    /// trips, losses and queues
    #[arg(long)]
    peculiar: bool,
    /// Run only cells whose name contains all of these words, separated by commas: "100 Mbit/s,50
    /// ms,bdp"
    #[arg(long, default_value = "")]
    only: String,
    /// Run only rates up to this, in Mbit/s: up to 100, half of the cells take a tenth of the time
    #[arg(long)]
    max_mbit: Option<u64>,
    /// Run only these contenders
    #[arg(long)]
    contender: Vec<Contender>,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads
    #[arg(long)]
    jobs: Option<usize>,
    /// Also write grid.csv, grid.svg and the summary grid.md into this folder
    #[arg(long)]
    out: Option<PathBuf>,
    /// Take existing figures of the baseline from this grid.csv instead of computing them again
    #[arg(long)]
    reuse: Option<PathBuf>,
    /// Run only cells whose baseline is in that file
    #[arg(long, requires = "reuse")]
    only_known: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if args.ci {
        return hold_floors(&args);
    }
    let mut work = work(&args);
    let mut known = known(&args, &work)?;
    if args.only_known {
        let cells: HashSet<String> = known.keys().map(|(cell, _)| cell.clone()).collect();
        work.retain(|(cell, _)| cells.contains(&cell.to_string()));
    }
    ensure!(!work.is_empty(), "no cell matches");
    let open: Vec<_> =
        work.iter().filter(|work| !known.contains_key(&key(work))).cloned().collect();
    let jobs = jobs(&args);
    let started = Instant::now();
    let results = run_all(&open, args.seed, jobs, |done| progress(done, open.len()));
    eprintln!("{} runs in {:.0} s", open.len(), started.elapsed().as_secs_f64());
    known.extend(open.iter().map(key).zip(results));
    let row = |work: (Cell, Contender)| {
        let figures = known.get(&key(&work)).expect("known before or computed now").clone();
        Row { cell: work.0, contender: work.1, figures }
    };
    let mut rows: Vec<Row> = work.into_iter().map(row).collect();
    repeat_close(&mut rows, args.seed, jobs, progress);
    eprintln!("with close cells again: {:.0} s", started.elapsed().as_secs_f64());
    print!("{}", table(&rows));
    if let Some(folder) = &args.out {
        write(folder, &rows, args.seed)?;
    }
    Ok(())
}

/// Runs the small grid and compares it with its floors.
fn hold_floors(args: &Args) -> Result<()> {
    let started = Instant::now();
    let rows = floors::run_small(jobs(args));
    eprintln!("{} runs in {:.0} s", rows.len(), started.elapsed().as_secs_f64());
    // The rows of the first seed.
    print!("{}", table(&rows[..floors::cells()]));
    if args.bless {
        return floors::bless(&rows);
    }
    let complaints = floors::complaints(&rows)?;
    ensure!(
        complaints.is_empty(),
        "{}\nIf the cost is justified, run `cargo lab grid --ci --bless` and explain it in the commit.",
        complaints.join("\n")
    );
    Ok(())
}

fn jobs(args: &Args) -> usize {
    args.jobs.or_else(|| available_parallelism().ok().map(usize::from)).unwrap_or(1)
}

/// Key of one piece of work.
fn key((cell, contender): &(Cell, Contender)) -> (String, String) {
    (cell.to_string(), contender.to_string())
}

/// Returns figures of the baseline that need not be computed again.
fn known(args: &Args, work: &[(Cell, Contender)]) -> Result<HashMap<(String, String), Figures>> {
    let Some(path) = &args.reuse else { return Ok(HashMap::new()) };
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let cells: Vec<_> = work.iter().map(|(cell, _)| cell.clone()).collect();
    let rows = parse(&text, args.seed, &cells)?;
    let baseline = rows.into_iter().filter(|row| row.contender.is_baseline());
    Ok(baseline.map(|row| (key(&(row.cell, row.contender)), row.figures)).collect())
}

fn write(folder: &Path, rows: &[Row], seed: u64) -> Result<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let command = format!("cargo lab grid {}", words.join(" "));
    fs::create_dir_all(folder)?;
    let files = [
        ("grid.csv", csv(rows, &command, seed)),
        ("grid.svg", svg(rows, Contender::default_wraith())),
        ("grid.md", summary(rows, &command, seed)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn work(args: &Args) -> Vec<(Cell, Contender)> {
    let cells = match args {
        Args { small: true, .. } => cells::small(),
        Args { peculiar: true, .. } => cells::peculiar(),
        _ => cells::product().into_iter().chain(cells::peculiar()).collect(),
    };
    let all = Contender::ALL.to_vec();
    let contenders = if args.contender.is_empty() { &all } else { &args.contender };
    let words: Vec<_> = args.only.split(',').map(str::trim).collect();
    let wanted = |cell: &Cell| {
        // A space in front, so that "1 Mbit/s" is not found in "501 Mbit/s".
        let name = format!(" {cell} ");
        if args.max_mbit.is_some_and(|most| cell.rate > most * 1_000_000) {
            return false;
        }
        words.iter().all(|word| word.is_empty() || name.contains(&format!(" {word} ")))
    };
    let cells = cells.into_iter().filter(wanted);
    cells.flat_map(|cell| contenders.iter().map(move |c| (cell.clone(), *c))).collect()
}

fn progress(done: usize, of: usize) {
    if std::io::stderr().is_terminal() || done.is_multiple_of(50) {
        let end = if std::io::stderr().is_terminal() { "\r" } else { "\n" };
        let _ = write!(std::io::stderr(), "{done} of {of}{end}");
    }
}
