//! Bar charts as SVG: a bar for each median, and a whisker from the minimum to the maximum. They
//! are legible on light and on dark pages: the colours follow the reader's scheme, and nothing
//! depends on colour alone.

use std::fmt::Write;

use super::results::{Measure, Spread, Table};

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 190.0;
const VALUE_WIDTH: f64 = 150.0;
const BAR_HEIGHT: f64 = 20.0;
const ROW_HEIGHT: f64 = 32.0;
const HEAD_HEIGHT: f64 = 56.0;
const WHISKER_HEIGHT: f64 = 10.0;

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.note{fill:#59636e}\
.bar{fill:#8c959f}.ours{fill:#0969da}.whisker{stroke:#1f2328;stroke-width:1.5}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.bar{fill:#656c76}.ours{fill:#4493f8}\
.whisker{stroke:#f0f6fc}}";

/// Draws the chart of a table; rows that did not run are omitted.
pub fn render(table: &Table) -> String {
    let bars: Vec<(&str, Spread)> = table
        .rows
        .iter()
        .filter_map(|row| Some((row.name.as_str(), row.spread(table.measure)?)))
        .collect();
    let height = HEAD_HEIGHT + ROW_HEIGHT * bars.len() as f64 + 8.0;
    let most = bars.iter().map(|(_, spread)| spread.max).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / most;
    let (unit, note) = match table.measure {
        Measure::Seconds => ("s", "seconds, median and min–max: shorter is better"),
        Measure::GbitPerSecond => ("Gbit/s", "Gbit/s, median and min–max: longer is better"),
    };
    let title = escape(&table.title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"8\" y=\"22\">{title}</text>\n\
         <text class=\"note\" x=\"8\" y=\"42\">{note}</text>\n",
    );
    for (at, (name, spread)) in bars.iter().enumerate() {
        let top = HEAD_HEIGHT + ROW_HEIGHT * at as f64;
        bar(&mut svg, name, spread, top, scale, unit);
    }
    svg + "</svg>\n"
}

fn bar(svg: &mut String, name: &str, spread: &Spread, top: f64, scale: f64, unit: &str) {
    let class = if name.starts_with("wraith") { "bar ours" } else { "bar" };
    let x = |value: f64| LABEL_WIDTH + value * scale;
    let (middle, text_y) = (top + BAR_HEIGHT / 2.0, top + BAR_HEIGHT / 2.0 + 4.5);
    let length = spread.median * scale;
    let (low, high) = (x(spread.min), x(spread.max));
    let (up, down) = (middle - WHISKER_HEIGHT / 2.0, middle + WHISKER_HEIGHT / 2.0);
    let (label_x, value_x) = (LABEL_WIDTH - 10.0, high.max(x(spread.median)) + 8.0);
    let (label, median) = (escape(name), spread.median);
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        "<text text-anchor=\"end\" x=\"{label_x:.1}\" y=\"{text_y:.1}\">{label}</text>\n\
         <rect class=\"{class}\" x=\"{LABEL_WIDTH:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>\n\
         <path class=\"whisker\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {up:.1}V{down:.1}M{high:.1} {up:.1}V{down:.1}\"/>\n\
         <text x=\"{value_x:.1}\" y=\"{text_y:.1}\">{median:.2} {unit}</text>\n",
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::results::{Row, Sample};
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_medians_and_whiskers_reach_the_extremes() {
        let sample = |seconds| Sample {
            bytes: 1,
            seconds,
            cpu_seconds: 0.0,
            peak_rss_bytes: std::collections::BTreeMap::new(),
        };
        let row = |name: &str, seconds: &[f64]| Row {
            samples: seconds.iter().copied().map(sample).collect(),
            ..Row::new(name)
        };
        let rows = vec![row("wraith", &[1.0, 2.0, 3.0]), row("a<b", &[4.0]), row("none", &[])];
        let svg = render(&Table {
            id: "x".into(),
            title: "A & B".into(),
            measure: Measure::Seconds,
            rows,
        });
        // 420 units for the longest whisker, 4 s.
        assert!(svg.contains("width=\"210.0\"") && svg.contains("width=\"420.0\""), "{svg}");
        assert!(svg.contains("M295.0 66.0H505.0"), "{svg}");
        assert!(svg.contains("A &amp; B") && svg.contains("a&lt;b") && !svg.contains("none"));
    }
}
