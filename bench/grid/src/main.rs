//! `cargo xtask grid`: runs the grid and writes what came out.

use std::fs;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use wraith_grid::cell::Cell;
use wraith_grid::cells;
use wraith_grid::contender::Contender;
use wraith_grid::report::{Row, csv, table};
use wraith_grid::run::run_all;

/// The scenario grid: goodput, queue delay, losses and fairness over simulated links
#[derive(Debug, Parser)]
#[command(name = "cargo xtask grid")]
struct Args {
    /// The few cheap cells that are tested with every change
    #[arg(long)]
    small: bool,
    /// The peculiar conditions and pairs of flows without the product of rates, round trips, losses and queues
    #[arg(long)]
    peculiar: bool,
    /// Only cells whose name contains all of these words, separated by commas: "100 Mbit/s,50 ms,bdp"
    #[arg(long, default_value = "")]
    only: String,
    /// Only these contenders
    #[arg(long)]
    contender: Vec<Contender>,
    /// All chance follows from this number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads
    #[arg(long)]
    jobs: Option<usize>,
    /// Also write the figures here
    #[arg(long)]
    csv: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let work = work(&args);
    ensure!(!work.is_empty(), "no cell has a name like that");
    let jobs = args.jobs.or_else(|| available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let started = Instant::now();
    let results = run_all(&work, args.seed, jobs, |done| progress(done, work.len()));
    let rows: Vec<Row> = work
        .into_iter()
        .zip(results)
        .map(|((cell, contender), figures)| Row { cell, contender, figures })
        .collect();
    print!("{}", table(&rows));
    eprintln!("{} runs in {:.0} s", rows.len(), started.elapsed().as_secs_f64());
    if let Some(path) = &args.csv {
        let words: Vec<_> = std::env::args().skip(1).collect();
        let text = csv(&rows, &format!("cargo xtask grid {}", words.join(" ")), args.seed);
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
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
