//! Tests of the ranks' messages about their tests: heard where they are due, and refused where they
//! are not.

use weft_balance::cost::{Against, CostReport, PartCost, RankWork, TestCost};
use weft_runtime::comm::{CommError, Rank};
use weft_runtime::wire;

use super::*;
use crate::step::contact::balancer::News;

/// A rank that has made a test, of what it is reported by two.
struct Hearer {
    world: World,
    balancer: Balancer,
}

impl Hearer {
    fn new() -> Self {
        let world = world(&sheet(12, "", "[partition]\npatches = 4"));
        let mut balancer = Balancer::default();
        balancer.ended(tests(0), Duration::ZERO, Duration::ZERO);
        Self { world, balancer }
    }

    fn hear(&mut self, reported: [&News; 2]) -> Result<(), CommError> {
        self.hear_bytes(reported.map(|news| wire::encode(news).unwrap()))
    }

    fn hear_bytes(&mut self, reported: [Vec<u8>; 2]) -> Result<(), CommError> {
        let news = self.balancer.news(0, &Policy::FORECAST_STATIC);
        self.balancer.hear(
            news.as_ref(),
            &reported,
            (&self.world.geometry(), &Policy::FORECAST_STATIC),
        )
    }

    fn parts(&self, patch: u32) -> [f64; 2] {
        let assignment = self.balancer.assignment().unwrap();
        [0, 1].map(|rank| {
            let part = assignment.part(rank, patch, Against::Itself);
            part.map_or(0.0, weft_balance::part::Part::share)
        })
    }
}

/// A large test of a patch.
fn tests(patch: u32) -> Vec<PartCost> {
    let test = TestCost {
        patch,
        against: Against::Itself,
        work: 1_000_000,
    };
    vec![test.into()]
}

fn cost_report(patch: u32) -> News {
    let mut cost_report = CostReport::default();
    cost_report.add(tests(patch), 1_000, 0);
    News::Costs(cost_report)
}

fn work_news(work: u64) -> News {
    News::Work(vec![RankWork { rank: 0, work }])
}

fn refused_of(rank: u32, heard: Result<(), CommError>) -> String {
    match heard {
        Err(CommError::Malformed { from, what }) if from == Rank(rank) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_assignment_is_made_and_its_boundaries_follow() {
    let mut hearer = Hearer::new();
    assert!(matches!(
        hearer.balancer.news(0, &Policy::FORECAST_STATIC),
        Some(News::Costs(_))
    ));
    assert!(hearer.balancer.news(0, &Policy::STATIC).is_none());
    hearer.hear([&cost_report(0), &cost_report(1)]).unwrap();
    let [planned, _] = hearer.parts(0);
    assert!(planned > 0.95, "{planned}");
    // The first took twice as long for it as was foreseen, so half as long again is believed, and
    // the other takes some of it over.
    hearer
        .balancer
        .ended(tests(0), Duration::ZERO, Duration::ZERO);
    let [one, two] = [2_000_000, 1_000_000].map(|work| RankWork {
        rank: u32::from(work < 2_000_000),
        work,
    });
    hearer
        .hear([&News::Work(vec![one]), &News::Work(vec![two])])
        .unwrap();
    let [kept, given] = hearer.parts(0);
    assert!((kept - 5.0 / 6.0).abs() < 0.02, "{kept}");
    assert!((kept + given - 1.0).abs() < 1e-9);
    assert_eq!(hearer.parts(1), [0.0, 1.0]);
}

#[test]
fn news_that_are_not_due_are_refused() {
    let mut hearer = Hearer::new();
    let what = refused_of(1, hearer.hear([&cost_report(0), &work_news(7)]));
    assert!(what.contains("other news"), "{what}");
    let what = refused_of(1, hearer.hear([&cost_report(0), &cost_report(4)]));
    assert!(what.contains("do not exist"), "{what}");
    refused_of(
        0,
        hearer.hear_bytes([Vec::new(), wire::encode(&cost_report(0)).unwrap()]),
    );
    hearer.hear([&cost_report(0), &cost_report(1)]).unwrap();
    hearer
        .balancer
        .ended(tests(0), Duration::ZERO, Duration::ZERO);
    let what = refused_of(0, hearer.hear([&cost_report(0), &work_news(7)]));
    assert!(what.contains("other news"), "{what}");
    refused_of(
        1,
        hearer.hear_bytes([wire::encode(&work_news(7)).unwrap(), vec![0, 1, 2]]),
    );
    // A rank that plans nothing expects nothing.
    let reported = [Vec::new(), vec![1]];
    let geometry = hearer.world.geometry();
    refused_of(
        1,
        hearer
            .balancer
            .hear(None, &reported, (&geometry, &Policy::STATIC)),
    );
    hearer
        .balancer
        .hear(
            None,
            &[Vec::new(), Vec::new()],
            (&geometry, &Policy::STATIC),
        )
        .unwrap();
}
