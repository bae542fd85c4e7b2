//! The keys of `material` of a `[[cloth]]`: numbers, or a [`Fabric`] and what is different from it.
//!
//! Keys that a model has no use for, and numbers that no sheet can have, are problems as well as
//! wrong units.

use super::form::{AlongWarpAndWeft, Amount, AmountOr, Flag, OneOf, Word, words};
use super::in_time::Changing;
use super::key::{Changes, Key, Value, note_missing, read_keys};
use super::quantity::{Dimension, Number};
use super::reader::{Range, Table};
use super::{BendingModel, Fabric, Material, MembraneModel};

type Of<F> = Value<Material, F>;

words!(MembraneModel, BendingModel);

impl Word for Fabric {
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }

    fn name(self) -> &'static str {
        self.name
    }
}

/// A time by which stiffness damps.
const DAMPING: Amount = Amount(Dimension::TIME, Range::NonNegative);

/// A drag coefficient.
const DRAG: Changing<Amount> = Changing(Amount(Dimension::NUMBER, Range::NonNegative));

/// The keys of a material, in the order in which they are read and echoed.
pub(super) const KEYS: &[Key<Material>] = &[
    // It comes before all others, which change what it has set.
    Key::new(
        "fabric",
        &Of {
            form: OneOf::<Fabric>::NEW,
            get: |_| None,
            set: |material, fabric| *material = fabric.material(),
        },
        "One of [the fabrics](#fabrics): density, stretch, shear, Poisson's ratio, bending and strain \
         limit are then its own.",
    )
    .unset("none"),
    Key::new(
        "density",
        &Of {
            form: Amount(Dimension::AREA_DENSITY, Range::Positive),
            get: |material| Some(material.density),
            set: |material, density| material.density = density,
        },
        "The mass per area.",
    )
    .required("density = \"0.15 kg/m2\""),
    Key::new(
        "model",
        &Of {
            form: OneOf::<MembraneModel>::NEW,
            get: |material| Some(material.membrane),
            set: |material, model| {
                material.membrane = model;
                if model == MembraneModel::Springs {
                    // Springs take them from the mesh, whatever the fabric.
                    (material.shear, material.poisson) = (None, Material::COTTON.poisson);
                }
            },
        },
        "The model of the resistance to stretching and shearing.",
    ),
    Key::new(
        "stretch",
        &Of {
            form: AlongWarpAndWeft(Dimension::STIFFNESS, Range::Positive),
            get: |material| Some(material.stretch),
            set: |material, stretch| material.stretch = stretch,
        },
        "The stiffness in the plane: Young's modulus times thickness. Springs have one.",
    )
    .changes(Changes::Onwards)
    .required("stretch = \"1000 N/m\""),
    Key::new(
        "shear",
        &Of {
            form: Amount(Dimension::STIFFNESS, Range::Positive),
            get: |material| material.shear,
            set: |material, shear| material.shear = Some(shear),
        },
        "The shear stiffness: modulus times thickness. Springs take it from the mesh.",
    )
    .changes(Changes::Onwards)
    .unset("`√(E₁E₂) / 2(1 + √(ν₁₂ν₂₁))`"),
    Key::new(
        "poisson",
        &Of {
            form: Amount(Dimension::NUMBER, Range::HalfOpen(0.0, 0.5)),
            get: |material| {
                // Springs have the ratio of their mesh.
                let has_own = material.membrane == MembraneModel::FiniteElements;
                has_own.then_some(material.poisson)
            },
            set: |material, poisson| material.poisson = poisson,
        },
        "Poisson's ratio: the contraction along the weft of cloth pulled along its warp.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "bending_model",
        &Of {
            form: OneOf::<BendingModel>::NEW,
            get: |material| Some(material.bending_model),
            set: |material, model| material.bending_model = model,
        },
        "The model of the resistance to bending. With `\"dihedral\"`, folds of the mesh are at rest.",
    ),
    Key::new(
        "bending",
        &Of {
            form: AlongWarpAndWeft(Dimension::RIGIDITY, Range::NonNegative),
            get: |material| Some(material.bending),
            set: |material, bending| {
                material.bending = bending;
                material.bending_bias = None;
            },
        },
        "The bending rigidity.",
    )
    .changes(Changes::Onwards)
    .required("bending = \"1e-5 N m\""),
    Key::new(
        "bending_bias",
        &Of {
            form: Amount(Dimension::RIGIDITY, Range::NonNegative),
            get: |material| material.bending_bias,
            set: |material, bias| material.bending_bias = Some(bias),
        },
        "The bending rigidity at 45° to the warp.",
    )
    .changes(Changes::Onwards)
    .unset("`(√D₁ + √D₂)²/4`"),
    Key::new(
        "bending_fit",
        &Of {
            form: Flag,
            get: |material| Some(material.bending_fit),
            set: |material, fit| material.bending_fit = fit,
        },
        "Whether elements are found from the mesh so that cloth is as stiff as it should be in all \
         directions: prefactors of hinges or folds where these can make it so, otherwise plates or \
         shells ([Bending](understand/bending.md)); of springs prefactors, with a warning if \
         they are off by more than 10 %.",
    ),
    Key::new(
        "bending_radius",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |material| {
                let is_used = material.bending_model == BendingModel::Springs;
                is_used.then_some(material.bending_radius)
            },
            set: |material, radius| material.bending_radius = radius,
        },
        "The radius of curvature at which bending springs have the rigidity.",
    )
    .unset("50 mm"),
    Key::new(
        "stretch_factor",
        &Of {
            form: Changing(Amount(Dimension::NUMBER, Range::Positive)),
            get: |material| Some(material.stretch_factor.clone()),
            set: |material, factor| material.stretch_factor = factor,
        },
        "How many times the cloth resists stretching and shearing as the keys above say; its damping in \
         proportion to stiffness follows.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "bending_factor",
        &Of {
            form: Changing(Amount(Dimension::NUMBER, Range::NonNegative)),
            get: |material| Some(material.bending_factor.clone()),
            set: |material, factor| material.bending_factor = factor,
        },
        "How many times the cloth resists bending as the keys above say; its damping in proportion to \
         stiffness follows.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "damping_mass",
        &Of {
            form: Amount(Dimension::RATE, Range::NonNegative),
            get: |material| Some(material.damping_mass),
            set: |material, damping| material.damping_mass = damping,
        },
        "Damping in proportion to mass.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "damping_stiffness",
        &Of {
            form: DAMPING,
            get: |material| one_for_all(material),
            set: |material, damping| material.damping = [damping; 3],
        },
        "Damping in proportion to stiffness, of stretching, shearing and bending.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "damping_stretch",
        &Of {
            form: DAMPING,
            get: |material| each_its_own(material).then_some(material.damping[0]),
            set: |material, damping| material.damping[0] = damping,
        },
        "Damping of stretching, instead of `damping_stiffness`.",
    )
    .changes(Changes::Onwards)
    .unset("`damping_stiffness`"),
    Key::new(
        "damping_shear",
        &Of {
            form: DAMPING,
            get: |material| {
                let has_own = material.membrane == MembraneModel::FiniteElements;
                (has_own && each_its_own(material)).then_some(material.damping[1])
            },
            set: |material, damping| material.damping[1] = damping,
        },
        "Damping of shearing, instead of `damping_stiffness`. Springs have that of stretching.",
    )
    .changes(Changes::Onwards)
    .unset("`damping_stiffness`"),
    Key::new(
        "damping_bending",
        &Of {
            form: DAMPING,
            get: |material| each_its_own(material).then_some(material.damping[2]),
            set: |material, damping| material.damping[2] = damping,
        },
        "Damping of bending, instead of `damping_stiffness`.",
    )
    .changes(Changes::Onwards)
    .unset("`damping_stiffness`"),
    Key::new(
        "drag_normal",
        &Of {
            form: DRAG,
            get: |material| Some(material.drag[0].clone()),
            set: |material, drag| material.drag[0] = drag,
        },
        "The drag coefficient of a triangle that moves along its normal.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "drag_tangential",
        &Of {
            form: DRAG,
            get: |material| Some(material.drag[1].clone()),
            set: |material, drag| material.drag[1] = drag,
        },
        "The drag coefficient of a triangle that moves in its plane.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "strain_limit",
        &Of {
            form: AmountOr(Dimension::NUMBER, Range::Positive, "none"),
            get: |material| Some(material.strain_limit),
            set: |material, limit| material.strain_limit = limit,
        },
        "The largest principal strain that the cloth bears. With `\"none\"` nothing but its stiffness \
         keeps it from stretching.",
    )
    .changes(Changes::Onwards),
    Key::new(
        "compression_limit",
        &Of {
            form: AmountOr(Dimension::NUMBER, Range::HalfOpen(0.0, 1.0), "none"),
            get: |material| Some(material.compression_limit),
            set: |material, limit| material.compression_limit = limit,
        },
        "The largest share of its length by which the cloth is shortened in its plane, in any direction: \
         beyond it cloth buckles. 0 allows none. With `\"none\"` nothing but its stiffness keeps it from \
         being compressed.",
    )
    .changes(Changes::Onwards),
];

/// The damping in proportion to stiffness, if stretching, shearing and bending have the same.
fn one_for_all(material: &Material) -> Option<f64> {
    let [stretch, shear, bending] = material.damping;
    ([shear, bending] == [stretch; 2]).then_some(stretch)
}

/// Whether stretching, shearing and bending differ in damping.
fn each_its_own(material: &Material) -> bool {
    one_for_all(material).is_none()
}

/// Reads the table.
pub(super) fn material(table: &Table<'_>) -> Material {
    let mut material = read_keys(table, KEYS, Material::COTTON);
    if !table.has("fabric") {
        note_missing(table, KEYS, &material);
    }
    check_bending(table, &material);
    check_damping(table, &material);
    check_membrane(table, &material);
    if material.membrane == MembraneModel::Springs {
        material.damping[1] = material.damping[0];
    }
    material
}

fn check_bending(table: &Table<'_>, material: &Material) {
    if let Some(bias) = material.bending_bias.filter(|_| table.has("bending_bias")) {
        let [warp, weft] = material.bending;
        // D₁c⁴ + D₂s⁴ + 2Hc²s² is negative nowhere if H ≥ −√(D₁D₂), and 2H = 4 bias − D₁ − D₂.
        let least = 0.25 * (warp.sqrt() - weft.sqrt()).powi(2);
        if bias < least {
            let message = format!(
                "must be at least {} N m with {} and {} N m along warp and weft, or cloth would \
                 gain energy bent between them",
                Number(least),
                Number(warp),
                Number(weft)
            );
            table.note("bending_bias", message);
        }
    }
    let is_known = material.bending.iter().all(|b| b.is_finite());
    if !material.bending_fit && !material.bends_alike() && is_known {
        table.note(
            "bending_fit",
            "a rigidity that depends on the direction needs a fit to the mesh; take `true`",
        );
    }
    if table.has("bending_radius") && material.bending_model != BendingModel::Springs {
        table.note(
            "bending_radius",
            "applies only to bending springs; take bending_model = \"springs\", or leave it out",
        );
    }
}

fn check_damping(table: &Table<'_>, material: &Material) {
    let springs = material.membrane == MembraneModel::Springs;
    let has_own_shear = table.has("damping_shear");
    let own_of_each = ["damping_stretch", "damping_bending"]
        .iter()
        .all(|key| table.has(key));
    if own_of_each && (springs || has_own_shear) && table.has("damping_stiffness") {
        table.note_idle(
            "damping_stiffness",
            "stretching, shearing and bending have damping of their own: leave it out",
        );
    }
    if springs && has_own_shear {
        table.note("damping_shear", SPRINGS_ONLY);
    }
}

fn check_membrane(table: &Table<'_>, material: &Material) {
    let [warp, weft] = material.stretch;
    if !(warp.is_finite() && weft.is_finite()) {
        return;
    }
    if material.membrane == MembraneModel::Springs {
        for key in ["shear", "poisson"] {
            if table.has(key) {
                table.note(key, SPRINGS_ONLY);
            }
        }
        if table.has("fabric") && !table.has("stretch") {
            let message = format!(
                "a fabric has two stiffnesses, {warp:.0} and {weft:.0} N/m, springs have one; give \
                 it too, such as `stretch = \"{:.0} N/m\"`, or take model = \"finite-elements\"",
                (warp * weft).sqrt()
            );
            table.note("model", message);
        } else if warp != weft || material.shear.is_some() && !table.has("shear") {
            table.note(
                "stretch",
                "springs have one stiffness; give one number, or take model = \"finite-elements\"",
            );
        }
        return;
    }
    let most = (warp / weft).sqrt();
    if material.poisson >= most {
        let message = format!(
            "must be less than √(warp/weft) of `stretch`, {}, or cloth would gain energy when pulled",
            Number(most)
        );
        table.note("poisson", message);
    }
}

/// The message about a key that springs along edges have no use for.
const SPRINGS_ONLY: &str = "springs along edges take this from the mesh; leave it out, or take \
                            model = \"finite-elements\"";
