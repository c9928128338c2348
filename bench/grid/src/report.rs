//! The figures as a table on screen and as CSV.

use std::fmt::Write as _;

use crate::cell::{Cell, millis};
use crate::contender::Contender;
use crate::run::{End, Figures};

/// One line of the report.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where.
    pub cell: Cell,
    /// Who.
    pub contender: Contender,
    /// How it went.
    pub figures: Figures,
}

/// The columns of [`csv`].
pub const CSV_HEADER: &str = "rtt_ms,mbit,loss,queue,condition,contender,goodput_of_capacity,goodput_mbit,\
     queue_delay_p95_ms,retransmitted,spurious,jain,first_flow_share,seconds,packets,end";

/// All rows as comma-separated values, after comment lines that say how to repeat them.
pub fn csv(rows: &[Row], command: &str, seed: u64) -> String {
    let mut text = format!("# {command}\n# seed {seed}\n{CSV_HEADER}\n");
    for Row { cell, contender, figures: f } in rows {
        let (jain, share) = f.fairness.map_or((String::new(), String::new()), |(jain, share)| {
            (format!("{jain:.3}"), format!("{share:.3}"))
        });
        let end = match &f.end {
            End::Complete => "complete".to_owned(),
            End::Cut => "cut".to_owned(),
            End::Aborted(why) => format!("aborted: {}", why.replace([',', '\n'], " ")),
        };
        let _ = writeln!(
            text,
            "{},{},{},{},{},{contender},{:.4},{:.3},{:.3},{:.5},{:.5},{jain},{share},{:.3},{},{end}",
            millis(cell.rtt),
            cell.rate / 1_000_000,
            cell.loss,
            cell.queue,
            cell.condition,
            f.goodput,
            f.mbit,
            millis(f.queue_delay),
            f.retransmitted,
            f.spurious,
            f.time.as_secs_f64(),
            f.packets,
        );
    }
    text
}

/// All rows for people: one line a cell, the goodput of every contender side by side, then the rest of each.
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
            End::Complete => "",
            End::Cut => "cut",
            End::Aborted(why) => why,
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
