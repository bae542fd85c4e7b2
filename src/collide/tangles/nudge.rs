//! Positions that are nudged out of what only touches.
//!
//! Sheets that are made on one grid meet edge on edge and vertex on edge. Features that only touch
//! do not cross, so the contour has gaps there, and a region that it would cut off leaks. Where
//! contours and regions are looked for, each vertex is displaced by an amount of its own that is
//! far below all sizes and far above rounding. Crossings are looked for at the positions as they
//! are.

use glam::DVec3;

/// The displacement along each axis at most, as a share of the largest coordinate.
const SHARE: f64 = 1e-9;

/// Positions of all vertices, each displaced by an amount that is a function of its number.
pub(super) fn nudged(x: &[DVec3]) -> Vec<DVec3> {
    let largest = x.iter().map(|p| p.abs().max_element()).fold(0.0, f64::max);
    let number = |k: u64| {
        let mut z = k.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let nudge = |v: u64| DVec3::new(number(3 * v), number(3 * v + 1), number(3 * v + 2));
    (0..)
        .zip(x)
        .map(|(v, p)| *p + nudge(v) * (SHARE * largest))
        .collect()
}
