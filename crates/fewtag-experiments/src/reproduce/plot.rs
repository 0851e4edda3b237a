//! Two small pictures as SVG 1.1 without scripts: bars of scores, and the transition table as a heat map.
//!
//! Colours are Okabe and Ito's, which colour-blind readers can tell apart; every mark also carries its number.

use std::fmt::Write;

use fewtag::eval::table::escape_html;

use super::results::LearnedTransitions;

const OURS: &str = "#0072b2";
const PAPER: &str = "#d55e00";

/// One bar: our figure, and the paper's where there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What the bar stands for.
    pub name: String,
    /// Our score in per cent.
    pub ours: Option<f64>,
    /// The published score in per cent.
    pub paper: Option<f64>,
}

/// Horizontal bars of our scores; a mark across each bar is the published score. The axis is 0 to 100.
#[must_use]
pub fn bars(title: &str, bars: &[Bar]) -> String {
    const ROW: usize = 18;
    const LEFT: f64 = 180.0;
    let x = |score: f64| LEFT + 1.9 * score.clamp(0.0, 100.0);
    let height = ROW * bars.len() + 28;
    let mut svg = open(420, height, title);
    for (r, bar) in bars.iter().enumerate() {
        let y = 26 + ROW * r;
        let text = y + 11;
        let _ = write!(
            svg,
            "<text x=\"174\" y=\"{text}\" text-anchor=\"end\">{}</text>",
            escape_html(&bar.name)
        );
        if let Some(ours) = bar.ours {
            let width = x(ours) - LEFT;
            let _ = write!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"14\" fill=\"{OURS}\"/>\
                 <text x=\"376\" y=\"{text}\" fill=\"{OURS}\">{ours:.1}</text>"
            );
        }
        if let Some(paper) = bar.paper {
            let _ = write!(
                svg,
                "<rect x=\"{:.1}\" y=\"{y}\" width=\"3\" height=\"14\" fill=\"{PAPER}\">\
                 <title>paper: {paper:.2}</title></rect>",
                x(paper) - 1.5
            );
        }
        svg.push('\n');
    }
    svg + "</svg>\n"
}

/// The learned transition scores: rows are where a step comes from, columns where it goes to.
#[must_use]
pub fn heat_map(title: &str, learned: &LearnedTransitions) -> String {
    let LearnedTransitions { start, between: [o, b, i], end } = *learned;
    // From the start and from O there is no slot to be the same or different: those fields stay blank.
    let rows = [
        ("start", [Some(start[0]), Some(start[1]), None, Some(start[2]), None, None]),
        ("O", [Some(o[0]), Some(o[1]), None, Some(o[3]), None, Some(end[0])]),
        ("B", [Some(b[0]), Some(b[1]), Some(b[2]), Some(b[3]), Some(b[4]), Some(end[1])]),
        ("I", [Some(i[0]), Some(i[1]), Some(i[2]), Some(i[3]), Some(i[4]), Some(end[2])]),
    ];
    let largest =
        rows.iter().flat_map(|(_, row)| row).flatten().fold(1e-6_f32, |m, x| m.max(x.abs()));
    let mut svg = open(420, 190, title);
    for (c, to) in ["O", "same B", "other B", "same I", "other I", "end"].iter().enumerate() {
        let _ =
            write!(svg, "<text x=\"{}\" y=\"40\" text-anchor=\"middle\">{to}</text>", 85 + 60 * c);
    }
    for (r, (from, row)) in rows.iter().enumerate() {
        let y = 48 + 34 * r;
        let _ = write!(svg, "<text x=\"48\" y=\"{}\" text-anchor=\"end\">{from}</text>", y + 21);
        for (c, score) in row.iter().enumerate() {
            let Some(score) = score else { continue };
            let colour = if *score >= 0.0 { OURS } else { PAPER };
            let opacity = 0.1 + 0.6 * score.abs() / largest;
            let _ = write!(
                svg,
                "<rect x=\"{}\" y=\"{y}\" width=\"58\" height=\"32\" fill=\"{colour}\" fill-opacity=\"{opacity:.2}\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{score:.2}</text>",
                56 + 60 * c,
                85 + 60 * c,
                y + 21
            );
        }
        svg.push('\n');
    }
    svg + "</svg>\n"
}

fn open(width: usize, height: usize, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <text x=\"4\" y=\"15\" font-weight=\"bold\">{}</text>\n",
        escape_html(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_name_their_numbers_and_escape_their_names() {
        let bar = Bar { name: "MN+P&D <x>".into(), ours: Some(50.0), paper: Some(56.5) };
        let svg = bars("We", &[bar, Bar { name: "none".into(), ours: None, paper: None }]);
        assert!(svg.contains("MN+P&amp;D &lt;x&gt;") && svg.contains(">50.0<"));
        assert!(svg.contains("paper: 56.50") && svg.contains("width=\"95.0\""));
        assert_eq!(svg.matches("<rect").count(), 2);
    }

    #[test]
    fn the_heat_map_leaves_impossible_fields_blank() {
        let learned = LearnedTransitions {
            start: [1.0, 0.5, -2.0],
            between: [[0.25; 5], [0.125; 5], [-0.5; 5]],
            end: [0.0; 3],
        };
        let svg = heat_map("NMN+P&D", &learned);
        assert_eq!(svg.matches("<rect").count(), 3 + 4 + 6 + 6);
        assert!(svg.contains(">-2.00<") && svg.contains(">0.25<"));
    }
}
