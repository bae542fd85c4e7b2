//! Rotations from angles.
//!
//! Every rank turns its meshes and bodies itself, on hosts with any C library: sines are those of
//! `libm`, in Rust. Nothing here is called in steps.

use glam::{DMat3, DQuat, DVec3};

/// Rotation about x, then y, then z, in rad.
pub(crate) fn rotation_matrix(angles: DVec3) -> DMat3 {
    let [x, y, z] = angles.to_array().map(libm::sincos);
    let about_x = DMat3::from_cols(
        DVec3::X,
        DVec3::new(0.0, x.1, x.0),
        DVec3::new(0.0, -x.0, x.1),
    );
    let about_y = DMat3::from_cols(
        DVec3::new(y.1, 0.0, -y.0),
        DVec3::Y,
        DVec3::new(y.0, 0.0, y.1),
    );
    let about_z = DMat3::from_cols(
        DVec3::new(z.1, z.0, 0.0),
        DVec3::new(-z.0, z.1, 0.0),
        DVec3::Z,
    );
    about_z * about_y * about_x
}

/// The rotation as a quaternion.
pub(crate) fn orientation(angles: DVec3) -> DQuat {
    let [x, y, z] = [DVec3::X, DVec3::Y, DVec3::Z].map(|axis| turn(axis * angles.dot(axis)));
    z * y * x
}

/// Rotation about an axis by an angle in rad, their product given.
pub(crate) fn turn(vector: DVec3) -> DQuat {
    let angle = vector.length();
    if angle == 0.0 {
        return DQuat::IDENTITY;
    }
    let (sine, cosine) = libm::sincos(0.5 * angle);
    let [x, y, z] = (vector / angle * sine).to_array();
    DQuat::from_xyzw(x, y, z, cosine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quaternions_turn_as_matrices_do() {
        for angles in [
            DVec3::new(0.3, -1.2, 2.5),
            DVec3::new(7.0, 0.0, -4.0),
            DVec3::ZERO,
        ] {
            let (matrix, quaternion) = (rotation_matrix(angles), orientation(angles));
            for p in [DVec3::X, DVec3::Y, DVec3::new(0.1, -2.0, 3.0)] {
                assert!((matrix * p - quaternion * p).length() < 1e-14);
            }
        }
        assert!(
            (turn(DVec3::Z * std::f64::consts::FRAC_PI_2) * DVec3::X - DVec3::Y).length() < 1e-15
        );
    }
}
