//! The picture of a validation case in the book: measured and known values over the same axes.

/// One picture of a validation case.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The title: the experiment.
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// The error found, in words with figures computed from the series.
    pub found: String,
}

/// An axis of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The quantity that it shows, with its unit.
    pub name: &'static str,
    /// Whether equal factors are equally far apart.
    pub logarithmic: bool,
}

/// Points of a picture.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name of the points' source.
    pub name: String,
    /// Whether they are the known answer, drawn as a line, or measured, drawn as marks.
    pub known: bool,
    pub points: Vec<[f64; 2]>,
}

impl Axis {
    pub fn linear(name: &'static str) -> Self {
        Self {
            name,
            logarithmic: false,
        }
    }

    pub fn logarithmic(name: &'static str) -> Self {
        Self {
            name,
            logarithmic: true,
        }
    }
}

impl Series {
    /// The known answer.
    pub fn known(name: impl Into<String>, points: impl IntoIterator<Item = [f64; 2]>) -> Self {
        Self {
            name: name.into(),
            known: true,
            points: points.into_iter().collect(),
        }
    }

    /// The curve of measured values.
    pub fn measured(name: impl Into<String>, points: impl IntoIterator<Item = [f64; 2]>) -> Self {
        Self {
            known: false,
            ..Self::known(name, points)
        }
    }
}

/// The largest relative difference of pairs of measured and known values.
pub fn worst(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let errors = pairs
        .into_iter()
        .map(|(measured, known)| (measured / known - 1.0).abs());
    errors.fold(0.0, f64::max)
}

/// A share in percent, as people write it.
pub fn percent(share: f64) -> String {
    if share < 1e-4 {
        format!("{:.0e} %", 100.0 * share)
    } else {
        format!("{:.2} %", 100.0 * share)
    }
}
