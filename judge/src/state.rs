//! The exact test of an edge and a face in one state.

use robust::{Coord3D, orient3d};

use crate::way::Position;

/// Whether an edge passes through a triangle: its ends are on both sides of the plane, or one of
/// them is in it, and the line meets the triangle, its border included. An edge that lies in the
/// plane passes through nothing; whether it touches shows by the edges of the triangle.
#[must_use]
pub fn pierces([p, q]: [Position; 2], [a, b, c]: [Position; 3]) -> bool {
    let side = |a: Position, b: Position, c: Position, d: Position| {
        let coord = |[x, y, z]: Position| Coord3D { x, y, z };
        orient3d(coord(a), coord(b), coord(c), coord(d))
    };
    let (of_p, of_q) = (side(a, b, c, p), side(a, b, c, q));
    if (of_p > 0.0 && of_q > 0.0) || (of_p < 0.0 && of_q < 0.0) || (of_p == 0.0 && of_q == 0.0) {
        return false;
    }
    let sides = [side(p, q, a, b), side(p, q, b, c), side(p, q, c, a)];
    sides.iter().all(|&s| s >= 0.0) || sides.iter().all(|&s| s <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: [Position; 3] = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];

    #[test]
    fn edges_pierce_or_do_not() {
        let up = |x: f64, y: f64, low: f64| pierces([[x, y, low], [x, y, 1.0]], FACE);
        assert!(up(0.2, 0.2, -1.0));
        assert!(up(0.2, 0.2, 0.0), "an end on the face");
        assert!(up(0.5, 0.5, -1.0), "through the border");
        assert!(up(0.0, 0.0, -1.0), "through a corner");
        assert!(!up(0.2, 0.2, f64::MIN_POSITIVE));
        assert!(!up(0.5 + f64::EPSILON, 0.5, -1.0));
        // One that lies in the plane shows by the edges.
        assert!(!pierces([[-1.0, 0.2, 0.0], [1.0, 0.2, 0.0]], FACE));
        // A face without area is pierced by nothing; its edges tell.
        assert!(!pierces(
            [[0.5, 0.0, -1.0], [0.5, 0.0, 1.0]],
            [FACE[0], FACE[1], [0.5, 0.0, 0.0]]
        ));
    }
}
