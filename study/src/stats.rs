//! Mean, spread and confidence of repetitions.

/// The summary of several measurements of one quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub count: usize,
    /// The mean of the measurements.
    pub mean: f64,
    /// The standard deviation of one, estimated from them; 0 for a single one.
    pub deviation: f64,
    /// Half the width of the interval that holds the true mean with 95 % probability, if errors are
    /// normal (Student's t); 0 for a single one, of which nothing is known.
    pub confidence: f64,
}

impl Summary {
    /// The summary of these values; all zeros if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = values.len();
        if count == 0 {
            return Self::default();
        }
        let n = count as f64;
        let mean = values.iter().sum::<f64>() / n;
        if count == 1 {
            return Self {
                count,
                mean,
                ..Self::default()
            };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0)).sqrt();
        Self {
            count,
            mean,
            deviation,
            confidence: student(count - 1) * deviation / n.sqrt(),
        }
    }
}

/// The number of standard errors that 95 % of means lie within, for this many degrees of freedom.
fn student(freedom: usize) -> f64 {
    /// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        // The normal quantile with its first two corrections [Abramowitz & Stegun 26.7.5].
        _ => {
            let (z, n) = (1.959_964_f64, freedom as f64);
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
            z + (z.powi(3) + z) / (4.0 * n) + second
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_values_have_the_interval_of_two_degrees_of_freedom() {
        let of = Summary::of(&[1.0, 2.0, 3.0]);
        assert_eq!((of.count, of.mean, of.deviation), (3, 2.0, 1.0));
        assert!((of.confidence - 4.303 / 3_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_value_says_nothing_of_its_spread() {
        let of = Summary::of(&[7.0]);
        assert_eq!((of.mean, of.deviation, of.confidence), (7.0, 0.0, 0.0));
        assert_eq!(Summary::of(&[]), Summary::default());
    }

    #[test]
    fn many_degrees_of_freedom_continue_the_table() {
        assert!((student(31) - 2.0395).abs() < 1e-3);
        assert!((student(1_000_000) - 1.96).abs() < 1e-3);
    }
}
