//! Draws a code or a ticket as a QR code on the terminal, for a device with a camera.

use qrcodegen::{QrCode, QrCodeEcc};

/// Width of the light border in modules. Cameras do not find the code without it.
const QUIET: i32 = 2;
/// Number of text lines that stay visible beside the code: the command and its explanation.
const OTHER_LINES: usize = 9;

/// Returns the picture for a terminal of this size, or None if it does not fit. Half blocks put two
/// modules into a character. It is dark on light, in all terminal colours.
pub fn picture(text: &str, columns: usize, rows: usize) -> Option<String> {
    // Readers accept upper case, which takes fewer modules.
    let code = QrCode::encode_text(&text.to_uppercase(), QrCodeEcc::Low).ok()?;
    let across = usize::try_from(code.size() + 2 * QUIET).ok()?;
    if across >= columns || across.div_ceil(2) + OTHER_LINES > rows {
        return None;
    }
    let mut picture = String::new();
    for y in (-QUIET..code.size() + QUIET).step_by(2) {
        picture.push_str("\x1b[30;107m");
        for x in -QUIET..code.size() + QUIET {
            // Outside the code every module is light.
            picture.push(match (code.get_module(x, y), code.get_module(x, y + 1)) {
                (false, false) => ' ',
                (true, false) => '▀',
                (false, true) => '▄',
                (true, true) => '█',
            });
        }
        picture.push_str("\x1b[0m\n");
    }
    Some(picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_drawn_where_it_fits_and_nowhere_else() {
        let ticket = format!("wraith:{}", "a".repeat(98));
        let picture = picture(&ticket, 80, 40).unwrap();
        let lines: Vec<_> = picture.lines().collect();
        assert!(lines.len() + OTHER_LINES <= 40);
        assert_eq!(super::picture(&ticket, 80, lines.len() + OTHER_LINES - 1), None);
        assert_eq!(super::picture(&ticket, 20, 100), None);
        // The finder pattern: a dark corner of seven modules inside the light border.
        let first: String = lines[1].chars().skip("\x1b[30;107m".chars().count()).take(9).collect();
        assert_eq!(first, "  █▀▀▀▀▀█");
    }
}
