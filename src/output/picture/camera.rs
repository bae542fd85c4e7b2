//! The camera of pictures.

use glam::{DVec3, Mat3, Vec3};

/// A perspective camera, upright (z is up).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    eye: Vec3,
    target: Vec3,
}

/// A map from space to pixels and depth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Projection {
    /// Rows: right, down, forward.
    axes: Mat3,
    origin: Vec3,
    /// Pixels per unit at depth 1, or per m without perspective.
    scale: f32,
    center: [f32; 2],
    perspective: bool,
}

/// Half the smaller side of a picture at distance 1.
const HALF_FIELD: f32 = 0.36;
/// Nearest distance that is drawn, in m.
const NEAR: f32 = 0.01;

impl Camera {
    /// A camera at `eye` that looks at `target`, both in m.
    #[must_use]
    pub fn new(eye: DVec3, target: DVec3) -> Self {
        let (eye, target) = (eye.as_vec3(), target.as_vec3());
        // One that stands where it looks at looks along y.
        let target = if eye.distance(target) > 1e-6 {
            target
        } else {
            eye + Vec3::Y
        };
        Self { eye, target }
    }

    /// A camera that has gone along by a way in m.
    #[must_use]
    pub fn moved_by(self, way: DVec3) -> Self {
        let way = way.as_vec3();
        Self {
            eye: self.eye + way,
            target: self.target + way,
        }
    }

    /// A three-quarter view, from above, of everything in a box from `low` to `high`, in m.
    #[must_use]
    pub(crate) fn framing(low: DVec3, high: DVec3) -> Self {
        let center = 0.5 * (low + high);
        let radius = (0.5 * (high - low).length()).max(1e-3);
        let direction = DVec3::new(0.55, -1.0, 0.62).normalize();
        Self::new(center + direction * (radius * 2.35), center)
    }

    /// Focal length, where half the smaller side of the picture is 1.
    #[must_use]
    pub fn focal(&self) -> f64 {
        f64::from(1.0 / HALF_FIELD)
    }

    /// The positions in m of the camera and of what it looks at.
    #[must_use]
    pub fn ends(&self) -> [DVec3; 2] {
        [self.eye, self.target].map(|p| p.as_dvec3())
    }

    pub(super) fn eye(&self) -> Vec3 {
        self.eye
    }

    /// The direction towards the key light: from above, over the camera's left shoulder.
    pub(super) fn key_light(&self) -> Vec3 {
        let axes = axes((self.target - self.eye).normalize_or(Vec3::Y));
        let left = -axes[0];
        let back = Vec3::new(-axes[2].x, -axes[2].y, 0.0).normalize_or_zero();
        (left * 0.75 + back * 0.35 + Vec3::Z * 1.0).normalize_or(Vec3::Z)
    }

    pub(super) fn projection(&self, width: f32, height: f32) -> Projection {
        let axes = axes((self.target - self.eye).normalize_or(Vec3::Y));
        Projection {
            axes: Mat3::from_cols(axes[0], axes[1], axes[2]).transpose(),
            origin: self.eye,
            scale: 0.5 * width.min(height) / HALF_FIELD,
            center: [0.5 * width, 0.5 * height],
            perspective: true,
        }
    }

    /// The view of a light far away, around what the camera looks at.
    pub(super) fn shadow_projection(&self, toward: Vec3, size: f32) -> Projection {
        let axes = axes(-toward);
        let radius = 0.62 * self.eye.distance(self.target);
        Projection {
            axes: Mat3::from_cols(axes[0], axes[1], axes[2]).transpose(),
            origin: self.target + toward * (4.0 * radius),
            scale: 0.5 * size / radius,
            center: [0.5 * size; 2],
            perspective: false,
        }
    }

    /// How much of a point is lost in the distance, in [0, 1].
    pub(super) fn fade(&self, p: Vec3) -> f32 {
        let from = self.eye.distance(self.target);
        let beyond = (Vec3::new(p.x, p.y, self.target.z) - self.target).length() / from;
        ((beyond - 0.45) / 1.1).clamp(0.0, 1.0)
    }
}

impl Projection {
    /// Pixel coordinates and depth in m; the depth of what is not in front is not positive.
    pub(super) fn place(&self, p: Vec3) -> Vec3 {
        self.to_picture(self.to_view(p))
    }

    /// Coordinates along right, down, forward.
    pub(super) fn to_view(self, p: Vec3) -> Vec3 {
        self.axes * (p - self.origin)
    }

    pub(super) fn to_picture(self, v: Vec3) -> Vec3 {
        let scale = if self.perspective {
            self.scale / v.z.max(NEAR)
        } else {
            self.scale
        };
        Vec3::new(
            self.center[0] + v.x * scale,
            self.center[1] + v.y * scale,
            v.z,
        )
    }

    /// Depth before which nothing is drawn.
    pub(super) fn near(&self) -> f32 {
        if self.perspective {
            NEAR
        } else {
            f32::NEG_INFINITY
        }
    }

    /// Whether depth must be interpolated with perspective.
    pub(super) fn perspective(&self) -> bool {
        self.perspective
    }

    /// Size of a pixel in m, without perspective.
    pub(super) fn texel(&self) -> f32 {
        1.0 / self.scale
    }
}

/// Right, down and forward for a view direction.
fn axes(forward: Vec3) -> [Vec3; 3] {
    let right = forward.cross(Vec3::Z).normalize_or(Vec3::X);
    [
        right,
        forward.cross(right).normalize_or(Vec3::NEG_Z),
        forward,
    ]
}
