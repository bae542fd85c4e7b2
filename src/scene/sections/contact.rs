//! The keys of `[contact]`.

use crate::scene::form::{Amount, Count, CountOr, Flag, OneOf, words};
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::quantity::Dimension;
use crate::scene::reader::{Range, Table};
use crate::scene::{
    ContactPairs, ContactParameters, Culling, Pipeline, Response, Scene, Sides, Squeezed, Substeps,
};

type Of<F> = Value<ContactParameters, F>;

words!(Culling);
words!(ContactPairs);
words!(Response);
words!(Squeezed);
words!(Pipeline);
words!(Sides);

impl Section for ContactParameters {
    const NAME: &'static str = "contact";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "thickness",
            &Of {
                form: Amount(Dimension::LENGTH, Range::Positive),
                get: |contact| Some(contact.thickness),
                set: |contact, thickness| contact.thickness = thickness,
            },
            "The thickness of cloths and bodies that have none of their own: the distance kept between \
             cloth and bodies, and between layers of cloth.",
        ),
        Key::new(
            "self_collision",
            &Of {
                form: Flag,
                get: |contact| Some(contact.self_collision),
                set: |contact, collides| contact.self_collision = collides,
            },
            "Whether cloth collides with cloth.",
        ),
        Key::new(
            "self_friction",
            &Of {
                form: Amount(Dimension::NUMBER, Range::NonNegative),
                get: |contact| Some(contact.self_friction),
                set: |contact, friction| contact.self_friction = friction,
            },
            "Coulomb's coefficient of friction of cloth on cloth, for cloths that have none of their own.",
        )
    .changes(Changes::Onwards)
        .idle(without_layers),
        Key::new(
            "culling",
            &Of {
                form: OneOf::<Culling>::NEW,
                get: |contact| Some(contact.culling),
                set: |contact, culling| contact.culling = culling,
            },
            "With `\"smooth\"`, tests within cloth that is shown to be too smooth to touch itself are \
             left out, and [no contact is lost](understand/detection.md#smooth-cloth). That is \
             proven, so the trajectory is the same to the bit. `\"none\"` is the conservative \
             mode, in which all tests are made: it trusts no proof, and takes longer.",
        )
        .changes(Changes::Output)
        .idle(without_layers),
        Key::new(
            "pairs",
            &Of {
                form: OneOf::<ContactPairs>::NEW,
                get: |contact| Some(contact.pairs),
                set: |contact, pairs| contact.pairs = pairs,
            },
            "Which pairs of features of cloth push each other. `\"closest\"`: pairs at [local minima of \
             the distance](understand/contact.md#one-pair-for-a-contact), so that a contact of smooth \
             layers is one pair for a vertex. `\"all\"`: all that come within reach, for comparison; \
             edges must be longer than the thickness then. Steps are certified for all pairs either way.",
        )
        .idle(without_pairs),
        Key::new(
            "response",
            &Of {
                form: OneOf::<Response>::NEW,
                get: |contact| Some(contact.response),
                set: |contact, response| contact.response = response,
            },
            "How impulses of contacts and of strain are found after the solve. `\"jacobi\"`: all at \
             once, in rounds with momentum. `\"gauss-seidel\"`: one after the other, in sweeps whose \
             order is that of [hashed colours](understand/contact.md#sweeps-instead-of-rounds). \
             `\"both\"`: four sweeps, then rounds.",
        ),
        Key::new(
            "tolerance",
            &Of {
                form: Amount(Dimension::NUMBER, Range::Positive),
                get: |contact| Some(contact.tolerance),
                set: |contact, tolerance| contact.tolerance = tolerance,
            },
            "The rounds of a pass end when no constraint asks for more, or for less, than this share of \
             the least distance to keep, within a step.",
        )
        .changes(Changes::Exactness),
        Key::new(
            "iterations",
            &Of {
                form: Count(1, 1000),
                get: |contact| Some(u64::from(contact.iterations)),
                set: |contact, most| contact.iterations = small(most),
            },
            "The most rounds, or sweeps, of impulses in a pass. A step has two passes, and up to twelve \
             where cloth is pulled beyond its strain limit.",
        )
        .changes(Changes::Exactness),
        Key::new(
            "strain_change",
            &Of {
                form: Amount(Dimension::NUMBER, Range::Positive),
                get: |contact| contact.strain_change,
                set: |contact, change| contact.strain_change = Some(change),
            },
            "The share of its length by which an edge may change in a part of a step, kept by damping \
             impulses.",
        )
        .unset("none"),
        Key::new(
            "certify",
            &Of {
                form: Flag,
                get: |contact| Some(contact.certify),
                set: |contact, certify| contact.certify = certify,
            },
            "Whether displacements are cut where cloth would cross cloth or a body in a step, so that \
             [it never does](understand/certification.md), whatever the step.",
        ),
        Key::new(
            "squeezed",
            &Of {
                form: OneOf::<Squeezed>::NEW,
                get: |contact| Some(contact.squeezed),
                set: |contact, squeezed| contact.squeezed = squeezed,
            },
            "The treatment of cloth to which bodies leave no room. `\"give\"`: the body of the higher \
             number lets it through, and it is led out when there is room. `\"stop\"`: the run \
             stops with exit code 4.",
        )
        .idle(uncertified),
        Key::new(
            "pipeline",
            &Of {
                form: OneOf::<Pipeline>::NEW,
                get: |contact| Some(contact.pipeline),
                set: |contact, pipeline| contact.pipeline = pipeline,
            },
            "`\"2006\"`: contacts are found in every part of a step, and each part is certified. `\"2009\"`: [a \
             step is `contact.substeps` substeps](understand/outer-loop.md); pairs of features of cloth \
             are found once for all of them, and the step is certified as a whole.",
        ),
        Key::new(
            "substeps",
            &Of {
                form: CountOr(1, Substeps::MOST as u64, Substeps::ADAPTIVE),
                get: |contact| {
                    Some(match contact.substeps {
                        Substeps::Fixed(count) => Some(u64::from(count)),
                        Substeps::Adaptive => None,
                    })
                },
                set: |contact, count| {
                    contact.substeps = match count {
                        Some(count) => Substeps::Fixed(small(count)),
                        None => Substeps::Adaptive,
                    };
                },
            },
            "The number of substeps of a step of `time.step`, which is as many times as long as a substep. \
             `\"adaptive\"`: there are 16, and cloth is certified after 16, 8, 4, 2 or each of them, the more often \
             the more it has to hold back.",
        )
        .idle(without_history),
        Key::new(
            "repulsion",
            &Of {
                form: Amount(Dimension::STIFFNESS, Range::NonNegative),
                get: |contact| Some(contact.repulsion),
                set: |contact, stiffness| contact.repulsion = stiffness,
            },
            "The stiffness of the springs by which pairs of features of cloth that are nearer than their thickness \
             move apart, at most by a tenth of the missing distance in a substep.",
        )
        .idle(without_history),
        Key::new(
            "sides",
            &Of {
                form: OneOf::<Sides>::NEW,
                get: |contact| Some(contact.sides),
                set: |contact, sides| contact.sides = sides,
            },
            "How a pair of features knows within a step that it has crossed, and attracts instead of pushing. `\"parity\"`: a pair that looks crossed is so if straight ways from where the step began cross an odd number of times. `\"paper\"`: a pair that looks crossed is so. `\"none\"`: it does not know.",
        )
        .idle(without_history),
    ];

    fn check(&self, _: &Table<'_>) {}
}

/// The reason why parameters of contact between layers do nothing, if so.
fn without_layers(scene: &Scene) -> Option<&'static str> {
    (!scene.contact.self_collision)
        .then_some("contact.self_collision is off: turn it on, or leave this out")
}

/// The reason why the choice of pairs does nothing, if so.
fn without_pairs(scene: &Scene) -> Option<&'static str> {
    match scene.contact.pipeline {
        Pipeline::Search => without_layers(scene),
        Pipeline::History => Some(
            "with contact.pipeline = \"2009\" all pairs are kept, for they are those of many substeps: \
             leave this out",
        ),
    }
}

/// The reason why parameters of pairs that are found once for many substeps do nothing, if so.
fn without_history(scene: &Scene) -> Option<&'static str> {
    (scene.contact.pipeline != Pipeline::History)
        .then_some("contact.pipeline is not \"2009\": set it, or leave this out")
}

/// The reason why parameters of certification do nothing, if so.
fn uncertified(scene: &Scene) -> Option<&'static str> {
    (!scene.contact.certify).then_some("contact.certify is off: turn it on, or leave this out")
}

/// A count whose range fits.
pub(super) fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
