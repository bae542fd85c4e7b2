//! Bodies that deform: where their vertices are at any time.
//!
//! Vertices go straight from sample to sample, and stay where they are before the first and after
//! the last one; the whole may move besides, as rigid bodies do. In a step each vertex goes
//! straight from where it is at the start to where it is at the end, and that is what contacts,
//! friction and certification see: its velocity is that displacement over the length of the step.
//! So the position of a body is a function of time alone, as that of a rigid one.
//!
//! Samples come from outside, and no more than two of them are kept. Reading one may fail while a
//! run is under way, for files can vanish. Such a fault is kept, so that the step in which it came
//! up is given up: [`Deforming::fault`].

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use glam::{DMat3, DVec3};

use super::body_motion::BodyMotion;
use super::enclosed::{Enclosed, OnSurface};

use crate::heap_bytes::{HeapBytes, owns_no_heap};

/// The samples of a mesh that deforms.
pub trait SampleSource: fmt::Debug + Send + Sync {
    /// The time of each sample in s, ascending; at least one.
    fn times(&self) -> &[f64];

    /// Reads the positions in m of all vertices in a sample.
    ///
    /// # Errors
    /// Why it cannot be read, for people.
    fn read(&self, index: usize) -> Result<Vec<DVec3>, SampleError>;

    /// The bytes on the heap that it holds.
    fn heap_bytes(&self) -> usize;
}

/// The reason why a sample cannot be read.
pub type SampleError = Box<dyn Error + Send + Sync>;

/// How many samples are kept.
const SAMPLES: usize = 2;
/// How many shapes are kept: those of the start and the end of a step, and those of another step
/// for ranks of this process that are ahead.
const SHAPES: usize = 4;

/// A body that deforms.
#[derive(Debug)]
pub struct Deforming {
    source: Box<dyn SampleSource>,
    /// How all of it moves besides.
    motion: BodyMotion,
    samples: Mutex<Kept<usize, Vec<DVec3>>>,
    shapes: Mutex<Kept<u64, DeformedShape>>,
    /// The space that it encloses at time 0, with the tree that serves for all times.
    at_start: Arc<Enclosed>,
    fault: OnceLock<String>,
}

impl HeapBytes for Deforming {
    fn heap_bytes(&self) -> usize {
        let Self {
            source,
            motion,
            samples,
            shapes,
            at_start,
            fault,
        } = self;
        let kept = samples.heap_bytes() + shapes.heap_bytes() + at_start.heap_bytes();
        source.heap_bytes() + motion.heap_bytes() + kept + fault.heap_bytes()
    }
}

/// The last few things that were made, each under a key.
type Kept<K, T> = Vec<(K, Arc<T>)>;

/// The shape of a body at one time.
#[derive(Debug)]
pub struct DeformedShape {
    /// Where its vertices are, in m.
    pub positions: Vec<DVec3>,
    at_start: Arc<Enclosed>,
    enclosed: OnceLock<Enclosed>,
}

/// The parts of the space that it encloses which it shares with that at time 0 are left out.
impl HeapBytes for DeformedShape {
    fn heap_bytes(&self) -> usize {
        let Self {
            positions,
            at_start: _,
            enclosed,
        } = self;
        positions.heap_bytes() + enclosed.get().map_or(0, Enclosed::own_bytes)
    }
}

impl DeformedShape {
    /// The space that it encloses then.
    #[must_use]
    pub fn enclosed(&self) -> &Enclosed {
        self.enclosed
            .get_or_init(|| self.at_start.deformed(self.positions.clone()))
    }
}

impl Deforming {
    /// Prepares a body with these triangles.
    ///
    /// # Errors
    /// The samples of its start cannot be read.
    pub fn new(
        source: Box<dyn SampleSource>,
        motion: BodyMotion,
        triangles: &[[u32; 3]],
    ) -> Result<Self, SampleError> {
        let mut samples = Vec::new();
        let positions = positions(&*source, &motion, &mut samples, 0.0)?;
        Ok(Self {
            source,
            motion,
            samples: Mutex::new(samples),
            shapes: Mutex::default(),
            at_start: Arc::new(Enclosed::of(positions, triangles)),
            fault: OnceLock::new(),
        })
    }

    /// The time of each sample in s, ascending; at least one.
    #[must_use]
    pub(crate) fn times(&self) -> &[f64] {
        self.source.times()
    }

    /// How all of it moves besides.
    #[must_use]
    pub(super) fn whole(&self) -> &BodyMotion {
        &self.motion
    }

    /// The number of the first sample after a time in s; that of all of them after the last one.
    pub(super) fn index_after(&self, time: f64) -> usize {
        self.times().partition_point(|&at| at <= time)
    }

    /// A sample as the body's own axes see it, in m.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn sample(&self, index: usize) -> Result<Arc<Vec<DVec3>>, SampleError> {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        sample(&*self.source, &mut samples, index)
    }

    /// The space that its triangles enclose with their vertices at these places, in m.
    pub(super) fn enclosed_of(&self, positions: Vec<DVec3>) -> Enclosed {
        self.at_start.deformed(positions)
    }

    /// The space that it encloses at a time in s as its own axes see it. Where samples cannot be
    /// read, that of another time, with a [fault](Self::fault).
    pub(super) fn enclosed_within(&self, time: f64) -> Enclosed {
        let still = BodyMotion::constant(DVec3::ZERO);
        let read = {
            let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            positions(&*self.source, &still, &mut samples, time)
        };
        let positions = read.unwrap_or_else(|error| {
            self.fail(&*error);
            self.at_start.positions().to_vec()
        });
        self.enclosed_of(positions)
    }

    /// Keeps the reason why a sample could not be read.
    pub(super) fn fail(&self, error: &(dyn Error + Send + Sync)) {
        self.fault.get_or_init(|| error.to_string());
    }

    /// Reads what a step between these times (s) needs at its start and at its end.
    ///
    /// # Errors
    /// A sample cannot be read.
    pub fn prepare(&self, times: [f64; 2]) -> Result<(), SampleError> {
        for time in times {
            self.made_at(time)?;
        }
        Ok(())
    }

    /// Its shape at a time in s. Where samples cannot be read, that of another time, with a
    /// [fault](Self::fault).
    #[must_use]
    pub fn at(&self, time: f64) -> Arc<DeformedShape> {
        self.made_at(time).unwrap_or_else(|error| {
            self.fail(&*error);
            Arc::new(self.shape(self.at_start.positions().to_vec()))
        })
    }

    /// The reason why a sample could not be read, if one could not: then no shape is right since.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    fn shape(&self, positions: Vec<DVec3>) -> DeformedShape {
        DeformedShape {
            positions,
            at_start: Arc::clone(&self.at_start),
            enclosed: OnceLock::new(),
        }
    }

    fn made_at(&self, time: f64) -> Result<Arc<DeformedShape>, SampleError> {
        let key = time.to_bits();
        let find = |kept: &Kept<u64, DeformedShape>| {
            let found = kept.iter().find(|(at, _)| *at == key);
            found.map(|(_, shape)| Arc::clone(shape))
        };
        let lock = || self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = find(&lock()) {
            return Ok(shape);
        }
        // Ranks of this process that ask at once wait for the one that reads.
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = find(&lock()) {
            return Ok(shape);
        }
        let positions = positions(&*self.source, &self.motion, &mut samples, time)?;
        let shape = Arc::new(self.shape(positions));
        let mut shapes = lock();
        keep(&mut shapes, SHAPES, key, &shape);
        Ok(shape)
    }
}

/// Keeps a thing as the latest of `most`.
fn keep<K, T>(kept: &mut Kept<K, T>, most: usize, key: K, made: &Arc<T>) {
    if kept.len() >= most {
        kept.remove(0);
    }
    kept.push((key, Arc::clone(made)));
}

/// A sample, with those that were read last.
fn sample(
    source: &dyn SampleSource,
    samples: &mut Kept<usize, Vec<DVec3>>,
    index: usize,
) -> Result<Arc<Vec<DVec3>>, SampleError> {
    if let Some((_, known)) = samples.iter().find(|(known, _)| *known == index) {
        return Ok(Arc::clone(known));
    }
    if samples.len() >= SAMPLES {
        // Time goes on: the earliest is the one that will not be wanted.
        let earliest = samples.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let earliest = earliest.map(|(place, _)| place);
        earliest.map(|place| samples.remove(place));
    }
    let read = Arc::new(source.read(index)?);
    samples.push((index, Arc::clone(&read)));
    Ok(read)
}

/// Where vertices are at a time in s, with the samples that were read last.
fn positions(
    source: &dyn SampleSource,
    motion: &BodyMotion,
    samples: &mut Kept<usize, Vec<DVec3>>,
    time: f64,
) -> Result<Vec<DVec3>, SampleError> {
    let mut sample = |index: usize| sample(source, samples, index);
    let times = source.times();
    let after = times.partition_point(|&at| at <= time);
    let mut positions = match (after.checked_sub(1), times.get(after)) {
        (Some(before), Some(&end)) => {
            let start = times[before];
            let from = sample(before)?;
            if time == start {
                from.to_vec()
            } else {
                let share = (time - start) / (end - start);
                let to = sample(after)?;
                let both = from.iter().zip(to.iter());
                both.map(|(from, to)| *from + (*to - *from) * share)
                    .collect()
            }
        }
        (Some(last), None) => sample(last)?.to_vec(),
        (None, _) => sample(0)?.to_vec(),
    };
    let pose = motion.at(time);
    positions.iter_mut().for_each(|p| *p = pose.apply(*p));
    Ok(positions)
}

/// A point that goes along with the surface of a body that deforms, as if it were stuck to one of
/// its triangles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attached {
    corners: [u32; 3],
    weights: [f64; 3],
    /// Where it is from there, as the triangle sees it, in m.
    offset: DVec3,
}

owns_no_heap!(Attached);

impl Attached {
    /// Attaches a point to the nearest triangle of a shape.
    #[must_use]
    pub fn new(point: DVec3, shape: &DeformedShape) -> Self {
        let OnSurface { corners, weights } = shape.enclosed().nearest_on(point);
        let held = Self {
            corners,
            weights,
            offset: DVec3::ZERO,
        };
        let (foot, axes) = held.foot(&shape.positions);
        let away = point - foot;
        Self {
            offset: axes.transpose() * away,
            ..held
        }
    }

    /// Where it is, in m, for these positions of the body's vertices.
    #[must_use]
    pub fn at(&self, positions: &[DVec3]) -> DVec3 {
        let (foot, axes) = self.foot(positions);
        foot + axes * self.offset
    }

    /// The point of the triangle, and the axes that turn with it.
    fn foot(&self, positions: &[DVec3]) -> (DVec3, DMat3) {
        let [a, b, c] = self.corners.map(|v| positions[v as usize]);
        let [u, v, w] = self.weights;
        let along = (b - a).normalize_or(DVec3::X);
        let normal = (b - a).cross(c - a).try_normalize();
        let normal = normal.unwrap_or_else(|| along.any_orthonormal_vector());
        let axes = DMat3::from_cols(along, normal.cross(along), normal);
        (a * u + b * v + c * w, axes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::mesh::icosphere;

    /// A ball that grows by its radius from sample to sample.
    #[derive(Debug)]
    struct Growing {
        times: Vec<f64>,
        ball: Vec<DVec3>,
        read: Arc<AtomicUsize>,
        broken: usize,
    }

    impl SampleSource for Growing {
        fn times(&self) -> &[f64] {
            &self.times
        }

        fn read(&self, index: usize) -> Result<Vec<DVec3>, SampleError> {
            self.read.fetch_add(1, Ordering::Relaxed);
            if index == self.broken {
                return Err("sample is gone".into());
            }
            let grown = self.ball.iter().map(|p| *p * (1.0 + index as f64));
            Ok(grown.collect())
        }

        fn heap_bytes(&self) -> usize {
            self.times.heap_bytes() + self.ball.heap_bytes()
        }
    }

    fn growing(broken: usize) -> (Deforming, Arc<AtomicUsize>) {
        let ball = icosphere(DVec3::ZERO, 1.0, 0.3).unwrap();
        let read = Arc::new(AtomicUsize::new(0));
        let source = Growing {
            times: (0..9).map(|k| 0.1 * f64::from(k)).collect(),
            ball: ball.positions.clone(),
            read: Arc::clone(&read),
            broken,
        };
        let still = BodyMotion::constant(DVec3::ZERO);
        let deforming = Deforming::new(Box::new(source), still, &ball.triangles).unwrap();
        (deforming, read)
    }

    #[test]
    fn vertices_go_straight_from_sample_to_sample_and_each_is_read_once() {
        let (body, read) = growing(99);
        let mut time = 0.0;
        while time < 1.0 {
            let shape = body.at(time);
            let known = 1.0 + (10.0 * time).min(8.0);
            assert!(
                shape
                    .positions
                    .iter()
                    .all(|p| (p.length() - known).abs() < 1e-12)
            );
            assert!(body.samples.lock().unwrap().len() <= SAMPLES);
            time += 0.013;
        }
        assert_eq!((read.load(Ordering::Relaxed), body.fault()), (9, None));
        assert!((body.at(-1.0).positions[0].length() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_shape_knows_its_inside_as_if_it_were_built_anew() {
        let (body, _) = growing(99);
        let shape = body.at(0.25);
        for k in 0..60 {
            let p = DVec3::new(0.11 * f64::from(k), 0.03, -0.02);
            assert_eq!(shape.enclosed().contains(p), k < 32, "{k}");
        }
    }

    #[test]
    fn a_sample_that_is_gone_is_a_fault_that_stays() {
        let (body, _) = growing(3);
        assert!(body.prepare([0.1, 0.2]).is_ok() && body.fault().is_none());
        assert_eq!(
            body.prepare([0.2, 0.3]).unwrap_err().to_string(),
            "sample is gone"
        );
        drop(body.at(0.25));
        assert_eq!(body.fault(), Some("sample is gone"));
    }

    #[test]
    fn an_attached_point_keeps_its_place_over_the_surface() {
        let (body, _) = growing(99);
        let point = DVec3::new(0.7, 0.5, 0.9);
        let held = Attached::new(point, &body.at(0.0));
        assert!(held.at(&body.at(0.0).positions).distance(point) < 1e-14);
        // The triangle goes outwards without a turn, and the distance from it stays.
        let gap = body.at(0.0).enclosed().distance(point);
        let then = held.at(&body.at(0.35).positions);
        assert!((body.at(0.35).enclosed().distance(then) - gap).abs() < 1e-12);
    }
}
