//! Keys that a scene sets in vain: they act only together with another one that it does not set.
//!
//! A key that contradicts another is refused when it is read ([`super::load`]). A key that is only
//! idle gives a notice, so that one may try a scene with and without the other key. Each key's
//! entry says when it is idle.

use super::Scene;
use super::key::Idle;
use super::sections::visit;

impl Scene {
    /// Makes a sentence for each key that is set and has no effect.
    #[must_use]
    pub fn idle_keys(&self) -> Vec<String> {
        let mut told = self.idle(None);
        told.extend(self.set_in_vain.iter().cloned());
        told
    }

    /// Makes a sentence for each key that a text sets to its default, and that has no effect.
    pub(super) fn set_to_defaults_in_vain(&self, set: &[String]) -> Vec<String> {
        self.idle(Some(set))
    }

    fn idle(&self, set: Option<&[String]>) -> Vec<String> {
        let mut idle = Idle {
            scene: self,
            set,
            told: Vec::new(),
        };
        visit(self, &mut idle);
        idle.told
    }
}

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
        // Reading the output of `weft check` tells as much, and no more.
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
        // Keys that are merely printed were set by nobody.
        let printed = Scene::parse(&text("damping_mass = 0", "").echo(), None, &[]).unwrap();
        assert_eq!(told(printed), "");
    }

    #[test]
    fn every_key_that_is_set_to_its_default_in_vain_is_told_and_not_echoed() {
        let cloth = "[[cloth]]\ngrid = { size = 1, vertices = 20 }\n\
                     material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n";
        for (key, rest) in [
            ("air.density", "[air]\ndensity = 1.204"),
            ("air.wind", "[air]\nwind = [0, 0, 0]"),
            ("time.strain_change", "[time]\nstrain_change = 0.1"),
            (
                "solver.newton_tolerance",
                "[solver]\nnewton_tolerance = 1e-4",
            ),
            (
                "contact.self_friction",
                "[contact]\nself_collision = false\nself_friction = 0.3",
            ),
            (
                "contact.culling",
                "[contact]\nself_collision = false\nculling = \"smooth\"",
            ),
            (
                "contact.squeezed",
                "[contact]\ncertify = false\nsqueezed = \"give\"",
            ),
            ("contact.substeps", "[contact]\nsubsteps = 8"),
            ("contact.sides", "[contact]\nsides = \"parity\""),
            (
                "output.formats",
                "[output]\nframes = false\nformats = [\"vtp\"]",
            ),
            (
                "start.crossings",
                "[contact]\ncertify = false\n[start]\ncrossings = \"refuse\"",
            ),
        ] {
            let scene = Scene::parse(&format!("{cloth}{rest}"), None, &[]).unwrap();
            let told = scene.idle_keys();
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(
                told[0].starts_with(&format!("{key} has no effect: ")),
                "{}",
                told[0]
            );
            let echo = Scene::parse(&scene.echo(), None, &[]).unwrap();
            assert_eq!(echo.idle_keys(), [""; 0], "{key}");
        }
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
            (
                "partition.state",
                "[partition]\nstate = \"subscribed\"\n[contact]\npipeline = \"2009\"",
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
