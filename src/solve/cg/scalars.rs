//! The scalars of an iteration, all of them from one round of sums.
//!
//! Conjugate gradients ask for r·u, u = M r, after r was changed by a step, and for how far that
//! step goes before it: two rounds of messages. But with w = A p
//!
//! ```text
//! α = r·u / p·w,   r⁺ = r − α w,   u⁺ = u − α M w
//! r⁺·u⁺ = r·u − 2 α u·w + α² w·M w = α² w·M w − r·u,   for u·w = p·w
//! ```
//!
//! so that r⁺·u⁺ is known before r⁺ is \[Meu87, Saa89\]. Used alone that recurrence drifts away
//! from r·u, until it becomes negative. It is used once here: the next iteration takes r·u as it
//! was computed from r and u, which is what makes these scalars as good as those of the usual form
//! in finite precision \[Meu87, CC20\]. Only β is left of the prediction. Directions that follow
//! each other are conjugate through it to as much as u·w = p·w holds, which says the same of the
//! two directions before: an error in it changes sign from one direction to the next, and does not
//! grow.
//!
//! Where r·u falls by many orders in one step, rounding may leave nothing of the difference. Then
//! the next direction is u itself, a step of steepest descent, from where conjugate gradients begin
//! anew.
//!
//! * \[CC20\] Chen, Carson: Predict-and-recompute conjugate gradient variants. SIAM Journal on
//!   Scientific Computing 42, 2020.
//! * \[Meu87\] Meurant: Multitasking the conjugate gradient method on the CRAY X-MP/48. Parallel
//!   Computing 5, 1987.
//! * \[Saa89\] Saad: Krylov subspace methods on supercomputers. SIAM Journal on Scientific and
//!   Statistical Computing 10, 1989.

/// The sums of an iteration over all vertices, to which the coarse level adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// The product r·u.
    pub(super) gamma: f64,
    /// The product p·w.
    pub(super) curvature: f64,
    /// The product w·M w.
    pub(super) energy: f64,
}

/// How far a step along p goes, and the next direction u + β p.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

impl Sums {
    /// The step that they ask for; none if the curvature is not positive, or so small that the step
    /// would not be finite.
    pub(super) fn step(self) -> Option<Step> {
        let Self {
            gamma,
            curvature,
            energy,
        } = self;
        let alpha = gamma / curvature;
        if !(curvature > 0.0 && alpha.is_finite()) {
            return None;
        }
        let beta = (alpha * (alpha * energy) - gamma) / gamma;
        // Not a number is not greater either.
        let beta = if beta > 0.0 && beta.is_finite() {
            beta
        } else {
            0.0
        };
        Some(Step { alpha, beta })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Predictions are right where r, A and M are diagonal, and p = u.
        #[test]
        fn predicted_scalar_products_equal_the_computed_ones(
            r in prop::array::uniform5(-1.0_f64..1.0),
            a in prop::array::uniform5(0.1_f64..10.0),
            m in prop::array::uniform5(0.1_f64..10.0),
        ) {
            let sum = |of: &dyn Fn(usize) -> f64| (0..5).map(of).sum::<f64>();
            let w = |i: usize| a[i] * m[i] * r[i];
            let gamma = sum(&|i| r[i] * m[i] * r[i]);
            prop_assume!(gamma > 1e-3);
            let sums = Sums {
                gamma,
                curvature: sum(&|i| m[i] * r[i] * w(i)),
                energy: sum(&|i| w(i) * m[i] * w(i)),
            };
            let Step { alpha, beta } = sums.step().unwrap();
            let after = sum(&|i| m[i] * (r[i] - alpha * w(i)).powi(2));
            prop_assert!((beta * gamma - after).abs() < 1e-12 * gamma * (1.0 + alpha * alpha));
        }
    }

    #[test]
    fn where_rounding_leaves_nothing_the_next_direction_is_steepest_descent() {
        // α² b = γ but for rounding: the step leads to the solution.
        for energy in [4.0, 4.0 - 1e-15, 3.9, f64::NAN, f64::INFINITY, 0.0] {
            let (gamma, curvature) = (1.0, 2.0);
            let step = Sums {
                gamma,
                curvature,
                energy,
            }
            .step();
            let expected = Step {
                alpha: 0.5,
                beta: 0.0,
            };
            assert_eq!(step, Some(expected), "{energy}");
        }
    }

    #[test]
    fn no_step_goes_along_a_direction_of_no_curvature() {
        for curvature in [0.0, -1.0, f64::NAN, 1e-320] {
            let (gamma, energy) = (1.0, 1.0);
            let sums = Sums {
                gamma,
                curvature,
                energy,
            };
            assert_eq!(sums.step(), None, "{curvature}");
        }
    }
}
