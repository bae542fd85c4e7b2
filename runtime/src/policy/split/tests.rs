//! Tests of what each split rule gives away, and of what no rule may do.

use proptest::prelude::*;

use super::*;

fn split(rule: Split, n: u32) -> (Option<Vec<u32>>, Vec<u32>) {
    let mut stack: Vec<u32> = (0..n).collect();
    let given = rule.take_from(&mut stack);
    (given, stack)
}

#[test]
fn each_split_rule_gives_away_its_entries() {
    for &rule in SPLITS {
        assert_eq!(split(rule, 0), (None, vec![]));
        assert_eq!(split(rule, 1), (None, vec![0]));
        assert_eq!(rule.gives_nothing(), split(rule, 9).0.is_none());
    }
    assert_eq!(split(Split::NEVER, 5), (None, vec![0, 1, 2, 3, 4]));
    assert_eq!(split(Split::OLDEST, 5), (Some(vec![0]), vec![1, 2, 3, 4]));
    let every_other = (Some(vec![0, 2, 4]), vec![1, 3]);
    assert_eq!(split(Split::EVERY_OTHER, 5), every_other);
    assert_eq!(split(Split::WEIGHT, 5), every_other);
    assert_eq!(split(Split::HALF, 5), (Some(vec![0, 1]), vec![2, 3, 4]));
}

#[test]
fn half_of_the_weight_goes() {
    let mut stack = vec![8.0, 1.0, 2.0, 4.0, 1.0];
    let given = Split::WEIGHT.take_from_weighted(&mut stack, |&w| w);
    assert_eq!((given, stack), (Some(vec![8.0]), vec![1.0, 2.0, 4.0, 1.0]));
}

#[test]
fn every_rule_is_found_by_its_own_name() {
    for &rule in SPLITS {
        assert_eq!(Split::by_name(rule.name()), Some(rule));
        assert!(!rule.about().is_empty());
    }
    assert_eq!(Split::by_name("purl"), None);
    assert_eq!(format!("{:?}", Split::default()), "every-other");
}

/// A user's rule, which may be wrong.
struct Wrong(Choice);

impl SplitRule for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn about(&self) -> &'static str {
        "whatever it was told"
    }

    fn choose(&self, _entries: &Entries<'_>) -> Choice {
        self.0.clone()
    }
}

#[test]
fn a_rule_that_asks_for_too_much_does_no_harm() {
    static MANY: Wrong = Wrong(Choice::Oldest(100));
    static NONE: Wrong = Wrong(Choice::Oldest(0));
    static UNMARKED: Wrong = Wrong(Choice::Marked(Vec::new()));
    assert_eq!(split(Split(&MANY), 3), (Some(vec![0, 1]), vec![2]));
    assert_eq!(split(Split(&NONE), 3), (None, vec![0, 1, 2]));
    assert_eq!(split(Split(&UNMARKED), 3), (None, vec![0, 1, 2]));
}

/// Weights as tasks may give them, sensible or not.
fn weights() -> impl Strategy<Value = Vec<f64>> {
    let odd = prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY]);
    let weight = prop_oneof![8 => 0.0..1e6, 1 => odd];
    prop::collection::vec(weight, 0..200)
}

proptest! {
    #[test]
    fn a_split_loses_no_entry_and_keeps_the_order_on_both_sides(
        rule in prop::sample::select(SPLITS),
        weights in weights(),
    ) {
        let mut kept: Vec<usize> = (0..weights.len()).collect();
        let given = rule.take_from_weighted(&mut kept, |&entry| weights[entry]);
        prop_assert_eq!(given.is_some(), weights.len() >= 2 && !rule.gives_nothing());
        if let Some(given) = &given {
            prop_assert!(!given.is_empty() && !kept.is_empty());
            prop_assert!(given.is_sorted() && kept.is_sorted());
        }
        let mut all = kept;
        all.extend(given.unwrap_or_default());
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..weights.len()));
    }

    #[test]
    fn weights_of_the_sides_differ_by_one_entry_at_most(
        weights in prop::collection::vec(0u32..1000, 2..200),
    ) {
        let mut kept = weights.clone();
        let given = Split::WEIGHT.take_from_weighted(&mut kept, |&w| f64::from(w)).unwrap();
        let (given, kept): (u32, u32) = (given.iter().sum(), kept.iter().sum());
        prop_assert!(given.abs_diff(kept) <= weights.iter().copied().max().unwrap());
    }

    #[test]
    fn a_split_gives_away_exactly_the_marked_entries(marks in prop::collection::vec(any::<bool>(), 0..20), n in 2u32..20) {
        let rule: &'static Wrong = Box::leak(Box::new(Wrong(Choice::Marked(marks.clone()))));
        let (given, kept) = split(Split(rule), n);
        let marked = |at: &u32| marks.get(*at as usize).copied().unwrap_or(false);
        match given {
            Some(given) => {
                prop_assert!(given.iter().all(marked) && !kept.iter().any(marked));
                prop_assert!(!given.is_empty() && !kept.is_empty());
            }
            None => prop_assert!((0..n).all(|at| marked(&at) == marked(&0))),
        }
    }

    #[test]
    fn a_thief_gets_some_of_a_pool_and_not_all(
        marks in prop::collection::vec(any::<bool>(), 0..20),
        rule in prop::sample::select(SPLITS),
        count in 2usize..40,
    ) {
        let wrong: &'static Wrong = Box::leak(Box::new(Wrong(Choice::Marked(marks))));
        for rule in [rule, Split(wrong)] {
            let goes = rule.of_pool(count);
            let given = goes.iter().filter(|&&goes| goes).count();
            prop_assert!(given > 0 && given < count && goes.len() <= count);
            prop_assert_eq!(goes.last(), Some(&true));
        }
        let (mut kept, every_other) = ((0..count).collect(), Split::EVERY_OTHER);
        let given = every_other.take_from(&mut kept).unwrap();
        let goes = every_other.of_pool(count);
        let same = (0..goes.len()).filter(|&at| goes[at]);
        prop_assert!(same.eq(given));
        prop_assert_eq!(rule.of_pool(1), [true]);
        prop_assert!(rule.of_pool(0).is_empty());
    }
}
