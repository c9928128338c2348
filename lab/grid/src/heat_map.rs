//! The grid as a picture: our goodput, that of the best baseline, and their ratio, with one square
//! for each cell.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cell::{Cell, millis};
use crate::cells::{LOSSES, QUEUES, product};
use crate::compare::{BEHIND, compare};
use crate::contender::Contender;
use crate::report::Row;

/// Sizes in pixels.
const SQUARE: (usize, usize) = (34, 16);
const LEFT: usize = 130;
const TOP: usize = 74;
const GAP: usize = 24;
/// Ratios from this one up look the same.
const RATIO_MAX: f64 = 4.0;
/// Lightness of the strongest and the weakest colour, percent.
const LIGHTNESS: (f64, f64) = (55.0, 97.0);

/// The value of a cell, by its name.
type Values = BTreeMap<String, f64>;

/// Draws the map of `contender` as SVG.
pub fn svg(rows: &[Row], contender: Contender) -> String {
    let comparisons = compare(rows, contender);
    let goodput = |row: &Row| (row.cell.to_string(), row.figures.goodput);
    let ours: Values = rows.iter().filter(|r| r.contender == contender).map(goodput).collect();
    let best: Values = comparisons.iter().map(|c| goodput(c.best)).collect();
    let ratios: Values = comparisons.iter().map(|c| (c.ours.cell.to_string(), c.ratio())).collect();
    let panels: [(String, &Values, Paint); 3] = [
        (format!("{contender}: goodput, % of capacity"), &ours, goodput_square),
        ("the better quinn: goodput, % of capacity".to_owned(), &best, goodput_square),
        (format!("{contender} / the better quinn"), &ratios, ratio_square),
    ];
    let cells = product();
    let columns = LOSSES.len() * QUEUES.len();
    let lines = cells.len() / columns;
    let panel_width = columns * SQUARE.0 + GAP;
    let (width, height) = (LEFT + panels.len() * panel_width, TOP + lines * SQUARE.1 + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (line, cell) in cells.iter().step_by(columns).enumerate() {
        let label = format!("{} Mbit/s, {} ms", cell.rate / 1_000_000, millis(cell.rtt));
        text(&mut svg, (LEFT - 6, y(line) + 12), "end", &label);
    }
    for (panel, (title, values, paint)) in panels.iter().enumerate() {
        let left = LEFT + panel * panel_width;
        text(&mut svg, (left, 20), "start", title);
        heads(&mut svg, left);
        squares(&mut svg, left, &cells, values, *paint);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns the colour and the text of a value.
type Paint = fn(f64) -> (String, String);

fn goodput_square(value: f64) -> (String, String) {
    let hue = 120.0 * value.clamp(0.0, 1.0);
    (format!("hsl({hue:.0},70%,70%)"), format!("{:.0}", 100.0 * value))
}

/// Red below [`BEHIND`], green above 1, white between.
fn ratio_square(ratio: f64) -> (String, String) {
    let (strong, weak) = LIGHTNESS;
    let distance = (ratio.max(1e-3).ln().abs() / RATIO_MAX.ln()).min(1.0);
    let lightness = weak + (strong - weak) * distance;
    let colour = match ratio {
        ratio if ratio < BEHIND => format!("hsl(0,80%,{:.0}%)", lightness.min(85.0)),
        ratio if ratio > 1.0 => format!("hsl(120,50%,{lightness:.0}%)"),
        _ => "white".to_owned(),
    };
    let words = if ratio < 9.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
    (colour, words)
}

/// Draws the names of losses and queues above a panel.
fn heads(svg: &mut String, left: usize) {
    for (group, loss) in LOSSES.iter().enumerate() {
        let x = left + group * QUEUES.len() * SQUARE.0;
        text(svg, (x, 42), "start", &format!("loss {loss}"));
        for (index, queue) in QUEUES.iter().enumerate() {
            text(svg, (x + index * SQUARE.0, 60), "start", &queue.to_string()[..3]);
        }
    }
}

fn squares(svg: &mut String, left: usize, cells: &[Cell], values: &Values, paint: Paint) {
    let columns = LOSSES.len() * QUEUES.len();
    for (index, cell) in cells.iter().enumerate() {
        let Some(value) = values.get(&cell.to_string()) else { continue };
        let (x, y) = (left + index % columns * SQUARE.0, y(index / columns));
        let (colour, words) = paint(*value);
        let (width, height) = (SQUARE.0 - 1, SQUARE.1 - 1);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\">\
             <title>{cell}</title></rect>"
        );
        text(svg, (x + SQUARE.0 / 2, y + 12), "middle", &words);
    }
}

fn y(line: usize) -> usize {
    TOP + line * SQUARE.1
}

fn text(svg: &mut String, (x, y): (usize, usize), anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn red_begins_exactly_where_a_cell_counts_as_lost() {
        assert!(ratio_square(BEHIND - 0.001).0.starts_with("hsl(0,"));
        assert_eq!(ratio_square(BEHIND).0, "white");
        assert!(ratio_square(1.2).0.starts_with("hsl(120,"));
    }

    #[test]
    fn a_square_is_drawn_for_each_value_and_none_for_cells_without() {
        let mut values = Values::new();
        values.insert(product()[7].to_string(), 0.5);
        let mut svg = String::new();
        squares(&mut svg, 0, &product(), &values, goodput_square);
        assert_eq!(svg.matches("<rect").count(), 1);
    }
}
