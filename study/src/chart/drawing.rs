//! Lines, discs and text, and how they become SVG.

use std::fmt::Write as _;

/// Red, green, blue.
pub(super) type Color = [u8; 3];

/// The place of a text, relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Line {
        points: Vec<[f64; 2]>,
        color: Color,
        width: f64,
        dashed: bool,
    },
    Disc {
        at: [f64; 2],
        radius: f64,
        color: Color,
    },
    /// The point is at the middle of its height.
    Text {
        at: [f64; 2],
        anchor: Anchor,
        size: f64,
        text: String,
    },
}

/// A picture of some width and height, in points.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(super) size: [f64; 2],
    pub(super) shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn new(size: [f64; 2]) -> Self {
        Self {
            size,
            shapes: Vec::new(),
        }
    }

    pub(super) fn line(&mut self, points: &[[f64; 2]], color: Color, width: f64, dashed: bool) {
        self.shapes.push(Shape::Line {
            points: points.to_vec(),
            color,
            width,
            dashed,
        });
    }

    pub(super) fn disc(&mut self, at: [f64; 2], radius: f64, color: Color) {
        self.shapes.push(Shape::Disc { at, radius, color });
    }

    pub(super) fn text(&mut self, at: [f64; 2], anchor: Anchor, size: f64, text: &str) {
        let text = text.to_owned();
        self.shapes.push(Shape::Text {
            at,
            anchor,
            size,
            text,
        });
    }

    /// Writes the drawing as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let [width, height] = self.size;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        let hex = |[r, g, b]: Color| format!("#{r:02x}{g:02x}{b:02x}");
        for shape in &self.shapes {
            // Strings take all that is written.
            let _ = match shape {
                Shape::Line {
                    points,
                    color,
                    width,
                    dashed,
                } => {
                    let points: Vec<String> = points
                        .iter()
                        .map(|[x, y]| format!("{x:.1},{y:.1}"))
                        .collect();
                    let dash = if *dashed {
                        " stroke-dasharray=\"4 3\""
                    } else {
                        ""
                    };
                    writeln!(
                        out,
                        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{dash}/>",
                        points.join(" "),
                        hex(*color)
                    )
                }
                Shape::Disc {
                    at: [x, y],
                    radius,
                    color,
                } => writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"/>",
                    hex(*color)
                ),
                Shape::Text {
                    at: [x, y],
                    anchor,
                    size,
                    text,
                } => {
                    let anchor = match anchor {
                        Anchor::Start => "start",
                        Anchor::Middle => "middle",
                        Anchor::End => "end",
                    };
                    let text = text.replace('&', "&amp;").replace('<', "&lt;");
                    let y = y + 0.35 * size;
                    writeln!(
                        out,
                        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{text}</text>"
                    )
                }
            };
        }
        out + "</svg>\n"
    }
}
