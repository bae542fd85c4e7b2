//! The keys of `[solver]`.

use super::contact::small;
use crate::scene::form::{Amount, Count, OneOf, words};
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::quantity::Dimension;
use crate::scene::reader::{Range, Table};
use crate::scene::{Integrator, Preconditioner, Scene, Solver};

type Of<F> = Value<Solver, F>;

words!(Integrator, Preconditioner);

/// A residual, relative to another one.
const RESIDUAL: Amount = Amount(Dimension::NUMBER, Range::HalfOpen(1e-15, 1.0));

impl Section for Solver {
    const NAME: &'static str = "solver";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "tolerance",
            &Of {
                form: RESIDUAL,
                get: |solver| Some(solver.tolerance),
                set: |solver, tolerance| solver.tolerance = tolerance,
            },
            "The residual at which a solve stops, in the preconditioner's norm and relative to the residual that the prescribed changes alone leave. A residual of 10⁻¹² √J, or of 10⁻⁷ of the effect of gravity in a part of a step if that is less, always suffices, except for the further solves of Newton's method.",
        )
        .changes(Changes::Exactness),
        Key::new(
            "velocity_tolerance",
            &Of {
                form: Amount(Dimension::SPEED, Range::Positive),
                get: |solver| solver.velocity_tolerance,
                set: |solver, tolerance| solver.velocity_tolerance = Some(tolerance),
            },
            "The velocity to which a residual may always amount, beside `solver.tolerance`: the velocity that it would give each vertex alone, as root mean square by mass.",
        )
        .changes(Changes::Exactness)
        .unset("none"),
        Key::new(
            "max_iterations",
            &Of {
                form: Count(1, 1_000_000),
                get: |solver| Some(u64::from(solver.max_iterations)),
                set: |solver, most| solver.max_iterations = small(most),
            },
            "The iterations of a solve after which the run stops with an error.",
        )
        .changes(Changes::Exactness),
        Key::new(
            "preconditioner",
            &Of {
                form: OneOf::<Preconditioner>::NEW,
                get: |solver| Some(solver.preconditioner),
                set: |solver, preconditioner| solver.preconditioner = preconditioner,
            },
            "The preconditioner of the solves: [what they are](understand/solve.md#preconditioners).",
        ),
        Key::new(
            "integrator",
            &Of {
                form: OneOf::<Integrator>::NEW,
                get: |solver| Some(solver.integrator),
                set: |solver, integrator| solver.integrator = integrator,
            },
            "The time integrator: [what they are](understand/time.md).",
        ),
        Key::new(
            "newton",
            &Of {
                form: Count(1, 1000),
                get: |solver| Some(u64::from(solver.newton)),
                set: |solver, most| solver.newton = small(most),
            },
            "The most linear systems solved for a step of `\"euler\"` or `\"bdf2\"`; with 1 it is \
             linearised once.",
        )
        .changes(Changes::Exactness),
        Key::new(
            "newton_tolerance",
            &Of {
                form: RESIDUAL,
                get: |solver| Some(solver.newton_tolerance),
                set: |solver, tolerance| solver.newton_tolerance = tolerance,
            },
            "The residual at which Newton's method stops, relative to the first of the part or that \
             of gravity alone, whichever is larger.",
        )
        .changes(Changes::Exactness)
        .idle(linearised_once),
    ];

    fn check(&self, table: &Table<'_>) {
        if self.newton > 1 && !self.integrator.is_implicit() {
            let message = format!(
                "the equations of \"{}\" are linear: there is nothing to iterate; leave it out, or \
                 take integrator = \"euler\" or \"bdf2\"",
                self.integrator.name()
            );
            table.note("newton", message);
        }
    }
}

/// The reason why the tolerance of Newton's method does nothing, if so.
fn linearised_once(scene: &Scene) -> Option<&'static str> {
    (scene.solver.newton == 1)
        .then_some("a step is linearised once: take a larger solver.newton, or leave this out")
}
