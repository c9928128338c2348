//! Formats the figures as a table and as CSV, and parses the CSV.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cell::{Cell, millis};
use crate::contender::Contender;
use crate::run::{Figures, RunEnd};

/// One line of the report.
#[derive(Clone, Debug)]
pub struct Row {
    /// The cell.
    pub cell: Cell,
    /// The contender.
    pub contender: Contender,
    /// The figures.
    pub figures: Figures,
}

const SEED_MARK: &str = "# seed ";
const ABORTED_MARK: &str = "aborted: ";

/// The columns of [`csv`].
pub const CSV_HEADER: &str = "rtt_ms,mbit,loss,queue,condition,contender,goodput_of_capacity,goodput_mbit,\
     queue_delay_p95_ms,retransmitted,spurious,jain,first_flow_share,seconds,packets,runs,end";

/// Formats all rows as comma-separated values, after comment lines with the command and the seed.
pub fn csv(rows: &[Row], command: &str, seed: u64) -> String {
    let mut text = format!("# {command}\n{SEED_MARK}{seed}\n{CSV_HEADER}\n");
    for Row { cell, contender, figures: f } in rows {
        let (jain, share) = f.fairness.map_or((String::new(), String::new()), |(jain, share)| {
            (format!("{jain:.3}"), format!("{share:.3}"))
        });
        let end = match &f.end {
            RunEnd::Complete => "complete".to_owned(),
            RunEnd::Cut => "cut".to_owned(),
            RunEnd::Aborted(why) => format!("{ABORTED_MARK}{}", why.replace([',', '\n'], " ")),
        };
        let _ = writeln!(
            text,
            "{},{contender},{:.4},{:.3},{:.3},{:.5},{:.5},{jain},{share},{:.3},{},{},{end}",
            columns(cell),
            f.goodput,
            f.mbit,
            millis(f.queue_delay),
            f.retransmitted,
            f.spurious,
            f.time.as_secs_f64(),
            f.packets,
            f.runs,
        );
    }
    text
}

/// The columns that name a cell.
fn columns(cell: &Cell) -> String {
    let Cell { rtt, rate, loss, queue, condition } = cell;
    format!("{},{},{loss},{queue},{condition}", millis(*rtt), rate / 1_000_000)
}

/// Parses the rows of a text that [`csv`] made with the same seed, as far as they belong to
/// `cells`.
pub fn parse(text: &str, seed: u64, cells: &[Cell]) -> Result<Vec<Row>> {
    let of_seed = text.lines().any(|line| line == format!("{SEED_MARK}{seed}"));
    ensure!(of_seed, "these figures were made with another seed than {seed}");
    let cells: HashMap<String, &Cell> = cells.iter().map(|cell| (columns(cell), cell)).collect();
    let lines = text.lines().filter(|line| !line.starts_with('#') && *line != CSV_HEADER);
    let mut rows = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(',').collect();
        ensure!(words.len() == CSV_HEADER.split(',').count(), "a line has other columns: {line}");
        let contender = words[5].parse().map_err(anyhow::Error::msg)?;
        if let Some(cell) = cells.get(&words[..5].join(",")) {
            let figures = figures(&words[6..]).with_context(|| format!("in {line}"))?;
            rows.push(Row { cell: (*cell).clone(), contender, figures });
        }
    }
    Ok(rows)
}

fn figures(words: &[&str]) -> Result<Figures> {
    let number = |index: usize| words[index].parse::<f64>();
    let fairness = if words[5].is_empty() { None } else { Some((number(5)?, number(6)?)) };
    let end = match words[10] {
        "complete" => RunEnd::Complete,
        "cut" => RunEnd::Cut,
        other => RunEnd::Aborted(other.trim_start_matches(ABORTED_MARK).to_owned()),
    };
    Ok(Figures {
        goodput: number(0)?,
        mbit: number(1)?,
        queue_delay: Duration::from_secs_f64(number(2)? / 1e3),
        retransmitted: number(3)?,
        spurious: number(4)?,
        fairness,
        time: Duration::from_secs_f64(number(7)?),
        packets: words[8].parse()?,
        runs: words[9].parse()?,
        end,
    })
}

/// Formats all rows for people: one line for each cell with the goodput of every contender, then
/// the remaining figures.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:44} {:14} {:>8} {:>9} {:>9} {:>7} {:>8}  {:13} end",
        "cell", "contender", "goodput", "Mbit/s", "queue ms", "again", "spurious", "Jain, share"
    );
    for Row { cell, contender, figures: f } in rows {
        let fairness = f
            .fairness
            .map_or(String::new(), |(jain, share)| format!("{jain:.2}, {:.0} %", 100.0 * share));
        let end = match &f.end {
            RunEnd::Complete => "",
            RunEnd::Cut => "cut",
            RunEnd::Aborted(why) => why,
        };
        let _ = writeln!(
            text,
            "{:44} {:14} {:>7.1}% {:>9.2} {:>9.2} {:>6.2}% {:>7.2}%  {fairness:13} {end}",
            cell.to_string(),
            contender.to_string(),
            100.0 * f.goodput,
            f.mbit,
            millis(f.queue_delay),
            100.0 * f.retransmitted,
            100.0 * f.spurious,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::peculiar;

    #[test]
    fn results_round_trip() {
        let cells = peculiar();
        let figures = Figures {
            goodput: 0.5,
            mbit: 12.5,
            queue_delay: Duration::from_millis(7),
            retransmitted: 0.25,
            spurious: 0.125,
            fairness: Some((0.75, 0.25)),
            time: Duration::from_secs(30),
            packets: 4321,
            runs: 5,
            end: RunEnd::Aborted("it had enough".to_owned()),
        };
        let contender = Contender::ALL[1];
        let row = |cell: &Cell| Row { cell: cell.clone(), contender, figures: figures.clone() };
        let rows: Vec<_> = cells.iter().map(row).collect();
        let text = csv(&rows, "a command", 7);
        let back = parse(&text, 7, &cells).unwrap();
        assert_eq!(csv(&back, "a command", 7), text);
        assert!(parse(&text, 8, &cells).is_err());
        assert_eq!(parse(&text, 7, &cells[..1]).unwrap().len(), 1);
    }
}
