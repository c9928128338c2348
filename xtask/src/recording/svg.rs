//! Frames as one animated SVG without a script: each frame is a group that is visible for its time.
//! A viewer without animation shows the last frame.

use std::fmt::Write;
use std::time::Duration;

use super::terminal::{Color, Screen};
use super::{COLUMNS, Frame, ROWS};

const CELL: f64 = 8.4;
const LINE: f64 = 18.0;
const MARGIN: f64 = 14.0;
/// Maximum length of a pause; the last frame stands for `END` before the animation restarts.
const LONGEST: Duration = Duration::from_millis(1500);
const END: Duration = Duration::from_secs(5);

const OPEN: &str = "<desc>";
const CLOSE: &str = "</desc>";

/// Draws the picture; `transcript` is its description for readers who cannot see it.
pub fn picture(frames: &[Frame], transcript: &str) -> String {
    let (width, one) = (f64::from(COLUMNS) * CELL + 2.0 * MARGIN, height());
    let all = 2.0 * one + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {all:.0}\" \
         font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\">\n\
         <title>A first transfer</title>\n{OPEN}{}{CLOSE}\n\
         <style>text{{fill:#d8dee9;white-space:pre}} .d{{fill:#4c566a}} .a{{fill:#5cc8d7}}</style>\n",
        escaped(transcript)
    );
    for top in [0.0, one + MARGIN] {
        writeln!(svg, "<rect y=\"{top:.0}\" width=\"{width:.0}\" height=\"{one:.0}\" rx=\"8\" fill=\"#20242c\"/>")
            .expect("into a String");
    }
    let times = times(frames);
    let total = times.last().map_or(Duration::ZERO, |(_, end)| *end).as_secs_f64();
    for (at, (frame, (from, to))) in frames.iter().zip(&times).enumerate() {
        let last = at + 1 == frames.len();
        let seen = if last { "visible" } else { "hidden" };
        write!(svg, "<g visibility=\"{seen}\">").expect("into a String");
        let (from, to) = (from.as_secs_f64() / total, to.as_secs_f64() / total);
        let (values, keys) = match (at, last) {
            (0, true) => ("visible".to_owned(), "0".to_owned()),
            (0, false) => ("visible;hidden".into(), format!("0;{to:.4}")),
            (_, true) => ("hidden;visible".into(), format!("0;{from:.4}")),
            (_, false) => ("hidden;visible;hidden".into(), format!("0;{from:.4};{to:.4}")),
        };
        write!(
            svg,
            "<animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"{total:.2}s\" \
             repeatCount=\"indefinite\" values=\"{values}\" keyTimes=\"{keys}\"/>"
        )
        .expect("into a String");
        draw(&mut svg, &frame.alice, 0.0);
        draw(&mut svg, &frame.bob, one + MARGIN);
        svg.push_str("</g>\n");
    }
    svg + "</svg>\n"
}

/// Returns the description of a picture.
pub fn transcript(svg: &str) -> Option<String> {
    let (_, rest) = svg.split_once(OPEN)?;
    let (text, _) = rest.split_once(CLOSE)?;
    Some(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

fn height() -> f64 {
    f64::from(ROWS) * LINE + 2.0 * MARGIN
}

/// Returns when each frame appears and disappears.
fn times(frames: &[Frame]) -> Vec<(Duration, Duration)> {
    let mut now = Duration::ZERO;
    let next = frames.iter().skip(1).map(|frame| Some(frame.at)).chain([None]);
    let mut times = Vec::new();
    for (frame, next) in frames.iter().zip(next) {
        let lasts = next.map_or(END, |next| next.saturating_sub(frame.at).min(LONGEST));
        times.push((now, now + lasts));
        now += lasts;
    }
    times
}

fn draw(svg: &mut String, screen: &Screen, top: f64) {
    for (row, pieces) in screen.0.iter().enumerate() {
        if pieces.is_empty() {
            continue;
        }
        let y = top + MARGIN + LINE * (row as f64 + 0.75);
        write!(svg, "<text x=\"{MARGIN:.0}\" y=\"{y:.1}\" xml:space=\"preserve\">")
            .expect("into a String");
        for piece in pieces {
            let text = escaped(&piece.text);
            let class = match piece.color {
                Color::Plain => None,
                Color::Dim => Some("d"),
                Color::Accent => Some("a"),
            };
            match class {
                Some(class) => write!(svg, "<tspan class=\"{class}\">{text}</tspan>"),
                None => write!(svg, "{text}"),
            }
            .expect("into a String");
        }
        svg.push_str("</text>");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::terminal::StyledText;
    use super::*;

    #[test]
    fn the_description_is_read_as_it_was_written_and_the_last_frame_stands() {
        let screen =
            Screen(vec![vec![StyledText { text: "a <b> & c".into(), color: Color::Accent }]]);
        let frame = |ms| Frame {
            at: Duration::from_millis(ms),
            alice: screen.clone(),
            bob: Screen::default(),
        };
        let svg = picture(&[frame(0), frame(100), frame(9000)], "a <b> & c\n");
        assert_eq!(transcript(&svg).unwrap(), "a <b> & c\n");
        assert_eq!(svg.matches("<g visibility=\"visible\">").count(), 1);
        assert_eq!(svg.matches("a &lt;b&gt; &amp; c").count(), 4);
        assert_eq!(svg.matches("dur=\"6.60s\"").count(), 3, "no pause is longer than it may be");
    }
}
