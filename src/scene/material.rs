//! Reads `material` of a `[[cloth]]`: numbers, or a [`Fabric`] and what is different from it.
//!
//! Keys that a model has no use for, and numbers that no sheet can have, are problems as well as wrong units.

use super::quantity::{Dimension, Number};
use super::reader::{Range, Table};
use super::{BendingModel, Fabric, Material, MembraneModel};

/// Reads the table.
pub(super) fn material(table: &Table<'_>) -> Material {
    let fabrics = Fabric::ALL.map(|fabric| (fabric.name, fabric));
    let fabric = table.choice("fabric", &fabrics);
    let mut base = fabric.map_or(Material::COTTON, |fabric| fabric.material());
    let density = table.quantity("density", Dimension::AREA_DENSITY, Range::Positive);
    if !table.has("fabric") {
        for (key, example) in [
            ("density", "density = \"0.15 kg/m2\""),
            ("stretch", "stretch = \"1000 N/m\""),
            ("bending", "bending = \"1e-5 N m\""),
        ] {
            if !table.has(key) {
                table.note_missing(key, example);
            }
        }
    }
    let membranes = MembraneModel::ALL.map(|model| (model.name(), model));
    let membrane = table.choice("model", &membranes).unwrap_or(base.membrane);
    if membrane == MembraneModel::Springs {
        (base.shear, base.poisson) = (None, Material::COTTON.poisson);
    }
    let shear = table.quantity("shear", Dimension::STIFFNESS, Range::Positive);
    let mut material = Material {
        density: density.unwrap_or(base.density),
        membrane,
        stretch: table
            .pair("stretch", Dimension::STIFFNESS, Range::Positive)
            .unwrap_or(base.stretch),
        shear: shear.or(base.shear),
        poisson: table
            .quantity("poisson", Dimension::NUMBER, Range::HalfOpen(0.0, 0.5))
            .unwrap_or(base.poisson),
        damping_mass: table
            .quantity("damping_mass", Dimension::RATE, Range::NonNegative)
            .unwrap_or(base.damping_mass),
        strain_limit: table
            .quantity("strain_limit", Dimension::NUMBER, Range::Positive)
            .unwrap_or(base.strain_limit),
        drag: [
            ("drag_normal", base.drag[0]),
            ("drag_tangential", base.drag[1]),
        ]
        .map(|(key, default)| {
            let drag = table.quantity(key, Dimension::NUMBER, Range::NonNegative);
            drag.unwrap_or(default)
        }),
        ..base
    };
    read_bending(table, &mut material);
    read_damping(table, &mut material);
    check_membrane(table, &material);
    material
}

fn read_bending(table: &Table<'_>, material: &mut Material) {
    let models = BendingModel::ALL.map(|model| (model.name(), model));
    if let Some(model) = table.choice("bending_model", &models) {
        material.bending_model = model;
    }
    if let Some(bending) = table.pair("bending", Dimension::RIGIDITY, Range::NonNegative) {
        material.bending = bending;
        material.bending_bias = None;
    }
    if let Some(bias) = table.quantity("bending_bias", Dimension::RIGIDITY, Range::NonNegative) {
        material.bending_bias = Some(bias);
        let [warp, weft] = material.bending;
        // D₁c⁴ + D₂s⁴ + 2Hc²s² is negative nowhere if H ≥ −√(D₁D₂), and 2H = 4 bias − D₁ − D₂.
        let least = 0.25 * (warp.sqrt() - weft.sqrt()).powi(2);
        if bias < least {
            let message = format!(
                "must be at least {} N m with {} and {} N m along warp and weft, or cloth would gain energy \
                 bent between them",
                Number(least),
                Number(warp),
                Number(weft)
            );
            table.note("bending_bias", message);
        }
    }
    let alike = material.bends_alike();
    let fit = table.boolean("bending_fit");
    material.bending_fit = fit.unwrap_or(true);
    if fit == Some(false) && !alike && material.bending.iter().all(|b| b.is_finite()) {
        table.note(
            "bending_fit",
            "a rigidity that depends on the direction is had by a fit to the mesh; take `true`",
        );
    }
    let radius = table.quantity("bending_radius", Dimension::LENGTH, Range::Positive);
    if radius.is_some() && material.bending_model != BendingModel::Springs {
        table.note(
            "bending_radius",
            "is of bending springs; take bending_model = \"springs\", or leave it out",
        );
    }
    material.bending_radius = radius.unwrap_or(material.bending_radius);
}

/// `damping_stiffness` is for all that have none of their own.
fn read_damping(table: &Table<'_>, material: &mut Material) {
    let time = |key| table.quantity(key, Dimension::TIME, Range::NonNegative);
    if let Some(all) = time("damping_stiffness") {
        material.damping = [all; 3];
    }
    let [stretch, shear, bending] = material.damping;
    let stretch = time("damping_stretch").unwrap_or(stretch);
    let bending = time("damping_bending").unwrap_or(bending);
    let own = time("damping_shear");
    let springs = material.membrane == MembraneModel::Springs;
    let shear = if springs {
        stretch
    } else {
        own.unwrap_or(shear)
    };
    material.damping = [stretch, shear, bending];
    let own_of_each = ["damping_stretch", "damping_bending"]
        .iter()
        .all(|key| table.has(key));
    if own_of_each && (springs || own.is_some()) && table.has("damping_stiffness") {
        table.note_idle(
            "damping_stiffness",
            "stretching, shearing and bending have damping of their own: leave it out",
        );
    }
    if springs && own.is_some() {
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
                "a fabric has two stiffnesses, {warp:.0} and {weft:.0} N/m, springs have one; give it too, such as `stretch = \"{:.0} N/m\"`, or \
                 take model = \"finite-elements\"",
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

const SPRINGS_ONLY: &str = "springs along edges take this from the mesh; leave it out, or take \
                            model = \"finite-elements\"";
