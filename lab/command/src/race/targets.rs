//! The targets of wraith and its results: ratios of medians of one race.

use super::results::Results;

/// One target.
struct Target {
    what: &'static str,
    /// Returns the ratio or the figure, if the race has it.
    reached: fn(&Results) -> Option<f64>,
    must: Option<Bound>,
    aim: Option<Bound>,
}

/// A lower or upper bound of a figure.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("≥ {bound}"),
            Self::AtMost(bound) => format!("≤ {bound}"),
        }
    }
}

/// Ratio of the median of `row` in `table` to wraith's.
fn over_wraith(results: &Results, table: &str, row: &str) -> Option<f64> {
    Some(results.median(table, row)? / results.median(table, "wraith")?)
}

fn wraith_over(results: &Results, table: &str, row: &str) -> Option<f64> {
    over_wraith(results, table, row).map(|ratio| 1.0 / ratio)
}

/// Highest peak memory of a side of wraith that moves files, in MiB.
fn peak_mib(results: &Results) -> Option<f64> {
    let files = results.tables.iter().filter(|t| t.id == "big" || t.id == "small");
    let rows = files.flat_map(|t| &t.rows).filter(|r| r.name == "wraith");
    rows.flat_map(|r| r.peak_rss_mib().into_values()).reduce(f64::max)
}

const TARGETS: [Target; 11] = [
    Target {
        what: "memory to memory, 1452 bytes: × tuned quinn",
        reached: |r| wraith_over(r, "memory-1452", "quinn CUBIC"),
        must: Some(Bound::AtLeast(1.0)),
        aim: Some(Bound::AtLeast(1.5)),
    },
    Target {
        what: "memory to memory, 1452 bytes: of the raw line",
        reached: |r| wraith_over(r, "memory-1452", "raw line"),
        must: None,
        aim: Some(Bound::AtLeast(0.6)),
    },
    Target {
        what: "memory to memory, 65,000 bytes: × tuned quinn",
        reached: |r| wraith_over(r, "memory-65000", "quinn CUBIC"),
        must: Some(Bound::AtLeast(1.0)),
        aim: Some(Bound::AtLeast(1.5)),
    },
    Target {
        what: "memory to memory, 65,000 bytes: of the raw line",
        reached: |r| wraith_over(r, "memory-65000", "raw line"),
        must: None,
        aim: Some(Bound::AtLeast(0.6)),
    },
    Target {
        what: "one file: times faster than scp",
        reached: |r| over_wraith(r, "big", "scp"),
        must: Some(Bound::AtLeast(2.5)),
        aim: None,
    },
    Target {
        what: "one file: times faster than sendme",
        reached: |r| over_wraith(r, "big", "sendme"),
        must: Some(Bound::AtLeast(8.0)),
        aim: None,
    },
    Target {
        what: "one file: × the time of cp",
        reached: |r| wraith_over(r, "big", "cp"),
        must: None,
        aim: Some(Bound::AtMost(2.0)),
    },
    Target {
        what: "small files: times faster than tar over ssh",
        reached: |r| over_wraith(r, "small", "tar over ssh"),
        must: Some(Bound::AtLeast(1.0)),
        aim: None,
    },
    Target {
        what: "small files: times faster than rsync",
        reached: |r| over_wraith(r, "small", "rsync"),
        must: Some(Bound::AtLeast(1.0)),
        aim: None,
    },
    Target {
        what: "small files: × the time of cp -r",
        reached: |r| wraith_over(r, "small", "cp"),
        must: None,
        aim: Some(Bound::AtMost(1.3)),
    },
    Target {
        what: "memory of a side while files move, MiB",
        reached: peak_mib,
        must: Some(Bound::AtMost(64.0)),
        aim: None,
    },
];

/// Formats a table of the targets that the race covers; empty if there are none.
pub fn render(results: &Results) -> String {
    let mut out = String::new();
    for target in &TARGETS {
        let Some(value) = (target.reached)(results) else { continue };
        let missed = |bound: Option<Bound>| bound.is_some_and(|bound| !bound.holds(value));
        let verdict = match (missed(target.must), missed(target.aim)) {
            (true, _) => "**missed**",
            (false, true) => "aim missed",
            (false, false) => "reached",
        };
        let text = |bound: Option<Bound>| bound.map_or_else(|| "–".into(), Bound::text);
        let (what, must, aim) = (target.what, text(target.must), text(target.aim));
        out += &format!("| {what} | {must} | {aim} | {value:.2} | {verdict} |\n");
    }
    if out.is_empty() {
        return out;
    }
    format!("| target | must | aim | reached | |\n|---|---|---|---|---|\n{out}")
}
