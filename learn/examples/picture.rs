//! A matrix of counts as a picture.

use std::fmt::Write;

/// Side of a cell, in pixels.
const CELL: usize = 36;

/// Counts of a square matrix as shades, with the counts in them; SVG.
pub fn of_matrix(counts: &[i64], names: &[String]) -> String {
    let side = names.len();
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let size = CELL * (side + 1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size}\" height=\"{size}\" \
         font-family=\"sans-serif\" font-size=\"13\" text-anchor=\"middle\">\n"
    );
    // Writing to a string cannot fail.
    let mut add = |text: std::fmt::Arguments| _ = svg.write_fmt(text);
    for (at, name) in names.iter().enumerate() {
        let middle = CELL * (at + 1) + CELL / 2;
        add(format_args!("<text x=\"{middle}\" y=\"{}\">{name}</text>\n", CELL / 2 + 5));
        add(format_args!("<text x=\"{}\" y=\"{}\">{name}</text>\n", CELL / 2, middle + 5));
    }
    for (at, count) in counts.iter().enumerate() {
        let (x, y) = (CELL * (at % side + 1), CELL * (at / side + 1));
        let shade = 255 - 200 * count / most;
        let ink = if shade < 140 { "white" } else { "black" };
        add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"rgb({shade},{shade},255)\"/>\n"
        ));
        if 0 < *count {
            let (x, y) = (x + CELL / 2, y + CELL / 2 + 5);
            add(format_args!("<text x=\"{x}\" y=\"{y}\" fill=\"{ink}\">{count}</text>\n"));
        }
    }
    svg + "</svg>\n"
}
