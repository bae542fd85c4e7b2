//! Keys that a scene sets in vain: they act only together with another one that it does not set.
//!
//! What contradicts another key is refused when it is read ([`super::load`]); what is only idle is told, so that one may
//! try a scene with and without the other key. What only the text tells, such as a value that is the default, is noted when it is read
//! ([`Scene::set_in_vain`]).

use super::{Air, ContactParameters, Scene, Solver, Time};

impl Scene {
    /// A sentence for each key that is set and has no effect.
    #[must_use]
    pub fn idle_keys(&self) -> Vec<String> {
        let (time, air) = (Time::default(), Air::default());
        let (contact, solver) = (ContactParameters::default(), Solver::default());
        let no_drag = self.cloths.iter().all(|c| c.material.drag == [0.0; 2]);
        let no_drag = no_drag.then_some(
            "no cloth has drag: give a material drag_normal or drag_tangential, or leave it out",
        );
        let layers = (!self.contact.self_collision)
            .then_some("contact.self_collision is off: turn it on, or leave this out");
        let keys = [
            (
                "time.strain_change",
                self.time.strain_change != time.strain_change,
                self.time.shortest.is_none().then_some(NEVER_CUT),
            ),
            (
                "solver.newton_tolerance",
                self.solver.newton_tolerance != solver.newton_tolerance,
                (self.solver.newton == 1).then_some(
                    "a step is linearised once: take a larger solver.newton, or leave this out",
                ),
            ),
            ("air.wind", self.air.wind != air.wind, no_drag),
            ("air.density", self.air.density != air.density, no_drag),
            (
                "contact.self_friction",
                self.contact.self_friction != contact.self_friction,
                layers,
            ),
            (
                "contact.culling",
                self.contact.culling != contact.culling,
                layers,
            ),
        ];
        keys.into_iter()
            .filter(|(_, is_set, _)| *is_set)
            .filter_map(|(key, _, why)| Some(format!("{key} has no effect: {}", why?)))
            .chain(self.set_in_vain.iter().cloned())
            .collect()
    }
}

/// Why `time.strain_change` does nothing.
pub(super) const NEVER_CUT: &str =
    "steps are cut only with time.shortest: give it, or leave this out";

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(more: &str) -> Vec<String> {
        let text = format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 20 }}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n{more}"
        );
        let scene = Scene::parse(&text, None, &[]).unwrap();
        let idle = scene.idle_keys();
        // What `weft check` prints is told as much of, and no more.
        let echo = Scene::parse(&scene.echo(), None, &[]).unwrap();
        assert_eq!(echo.idle_keys(), idle, "{more}");
        idle
    }

    #[test]
    fn keys_set_to_their_default_and_beside_all_others_are_told() {
        let text = |damping: &str, rest: &str| {
            let text = format!(
                "[[cloth]]\ngrid = {{ size = 1, vertices = 20 }}\n\
                 material = {{ density = 0.15, stretch = 1000, bending = 1e-5, {damping} }}\n{rest}"
            );
            Scene::parse(&text, None, &[]).unwrap()
        };
        let all = "damping_stiffness = 1e-3, damping_stretch = 0, damping_bending = 0";
        let told = |scene: Scene| scene.idle_keys().join("\n");
        assert_eq!(told(text(all, "")), "");
        let vain = told(text(&format!("{all}, damping_shear = 0"), ""));
        assert!(
            vain.starts_with("cloth.material.damping_stiffness has no effect: "),
            "{vain}"
        );
        // Springs have no shear of their own.
        let springs = told(text(&format!("{all}, model = \"springs\""), ""));
        assert_eq!(springs, vain);
        let change = text("damping_mass = 0", "[time]\nstrain_change = 0.1");
        assert!(told(change.clone()).starts_with("time.strain_change has no effect: "));
        assert_eq!(change.idle_keys().len(), 1);
        let cut = "[time]\nstrain_change = 0.1\nshortest = 1e-4";
        assert_eq!(told(text("damping_mass = 0", cut)), "");
        // Nobody has set what is merely printed.
        let printed = Scene::parse(&text("damping_mass = 0", "").echo(), None, &[]).unwrap();
        assert_eq!(told(printed), "");
    }

    #[test]
    fn keys_that_act_only_with_another_are_told() {
        let none = Vec::<String>::new();
        for (table, other, key) in [
            ("time", "shortest = 1e-4", "strain_change = 0.05"),
            ("solver", "newton = 5", "newton_tolerance = 0.01"),
            ("contact", "self_collision = true", "self_friction = 0.5"),
        ] {
            assert_eq!(idle(&format!("[{table}]\n{other}\n{key}")), none);
        }
        for (key, rest) in [
            ("time.strain_change", "[time]\nstrain_change = 0.05"),
            (
                "solver.newton_tolerance",
                "[solver]\nnewton_tolerance = 0.01",
            ),
            ("air.wind", "[air]\nwind = [1, 0, 0]"),
            (
                "contact.self_friction",
                "[contact]\nself_collision = false\nself_friction = 0.5",
            ),
        ] {
            let told = idle(rest);
            assert_eq!(told.len(), 1, "{told:?}");
            let start = format!("{key} has no effect: ");
            assert!(told[0].starts_with(&start), "{}", told[0]);
        }
        let both = "[time]\nstrain_change = 0.05\n[air]\ndensity = 1.0";
        assert_eq!(idle(both).len(), 2);
        assert_eq!(idle("[contact]\nself_collision = false"), none);
        // That one acts by itself.
        assert_eq!(idle("[contact]\nstrain_change = 0.05"), none);
    }
}
