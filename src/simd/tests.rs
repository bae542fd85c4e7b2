//! Every instruction set has the bits of plain code.

use super::*;

#[derive(Clone, Copy)]
struct Across<'a>(&'a [[f64; 4]]);

impl Kernel for Across<'_> {
    type Output = Vec<[f64; 3]>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Vec<[f64; 3]> {
        let of = |fours: &[[f64; 4]; 3]| {
            let [x, y, z, _] = lanes.store(lanes.sums(fours.each_ref().map(|f| lanes.load(f))));
            [x, y, z]
        };
        self.0.array_windows().map(of).collect()
    }
}

#[test]
fn sums_across_lanes_have_the_same_bits_too() {
    let fours: Vec<[f64; 4]> = (1..500)
        .map(|i| [1.0, -0.7, 1e-9, 1e9].map(|x| x / f64::from(i)))
        .collect();
    let bits = |sums: Vec<[f64; 3]>| -> Vec<[u64; 3]> {
        sums.into_iter().map(|s| s.map(f64::to_bits)).collect()
    };
    let expected = bits(Across(&fours).run(Plain));
    for found in by_each_set(Across(&fours)) {
        assert_eq!(bits(found), expected);
    }
}

#[derive(Clone, Copy)]
struct Apart<'a>(&'a [[f64; 4]; 3]);

impl Kernel for Apart<'_> {
    type Output = [[[f64; 4]; 3]; 2];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [[[f64; 4]; 3]; 2] {
        let apart = lanes.coordinates(self.0.each_ref().map(|four| lanes.load(four)));
        [apart, lanes.vectors(apart)].map(|fours| fours.map(|four| lanes.store(four)))
    }
}

#[test]
fn vectors_are_taken_apart_and_put_together_by_any_width() {
    let vectors = [0.0, 4.0, 8.0].map(|first| [first, first + 1.0, first + 2.0, first + 3.0]);
    for found in by_each_set(Apart(&vectors)) {
        let [x, y, z] = found[0];
        assert_eq!((x, y), ([0.0, 3.0, 6.0, 9.0], [1.0, 4.0, 7.0, 10.0]));
        assert_eq!((z, found[1]), ([2.0, 5.0, 8.0, 11.0], vectors));
    }
}

#[derive(Clone, Copy)]
struct Exchange<'a>(&'a [[f64; 4]; 4]);

impl Kernel for Exchange<'_> {
    type Output = [[f64; 4]; 4];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [[f64; 4]; 4] {
        let rows = self.0.each_ref().map(|row| lanes.load(row));
        lanes.transposed(rows).map(|four| lanes.store(four))
    }
}

#[test]
fn rows_and_columns_are_exchanged_by_any_width() {
    let rows = [0.0, 4.0, 8.0, 12.0].map(|first| [first, first + 1.0, first + 2.0, first + 3.0]);
    for found in by_each_set(Exchange(&rows)) {
        assert_eq!(found, Exchange(&rows).run(Plain));
        assert_eq!(found[1], [1.0, 5.0, 9.0, 13.0]);
    }
}

#[test]
fn the_last_vector_has_four_numbers_too() {
    let vectors = [DVec3::ONE, DVec3::new(2.0, 3.0, 4.0)];
    assert_eq!(four_at(&vectors, 0, &mut [0.0; 4]), &[1.0, 1.0, 1.0, 2.0]);
    assert_eq!(four_at(&vectors, 1, &mut [0.0; 4]), &[2.0, 3.0, 4.0, 0.0]);
}

#[derive(Clone, Copy)]
struct Short([f64; 4]);

impl Kernel for Short {
    type Output = [u32; 4];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [u32; 4] {
        lanes.shortened(lanes.load(&self.0)).map(f32::to_bits)
    }
}

#[test]
fn numbers_are_shortened_to_the_nearest_by_any_width() {
    for four in [
        [1.0, -1.0 / 3.0, 1e-40, 1e39],
        [
            1.0 + f64::from(f32::EPSILON) / 2.0,
            -0.0,
            1e-60,
            f64::NEG_INFINITY,
        ],
    ] {
        let expected = four.map(|a| (a as f32).to_bits());
        assert!(
            by_each_set(Short(four))
                .iter()
                .all(|found| *found == expected)
        );
    }
}

#[derive(Clone, Copy)]
struct Positive([f64; 4]);

impl Kernel for Positive {
    type Output = [u64; 4];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [u64; 4] {
        let four = lanes.store(lanes.positive(lanes.load(&self.0)));
        four.map(f64::to_bits)
    }
}

#[test]
fn numbers_not_above_zero_become_zero_at_any_width() {
    for four in [
        [1.0, -1.0, 0.0, -0.0],
        [f64::NAN, -f64::NAN, 1e-320, f64::INFINITY],
    ] {
        let expected = four.map(|a| if a > 0.0 { a } else { 0.0 }.to_bits());
        let found = by_each_set(Positive(four));
        assert!(found.iter().all(|found| *found == expected));
    }
}

#[derive(Clone, Copy)]
struct Less([f64; 4], [f64; 4]);

impl Kernel for Less {
    type Output = [f64; 4];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [f64; 4] {
        let [a, b] = [self.0, self.1].map(|four| Numbers(lanes, lanes.load(&four)));
        a.where_less(b, a.splat(1.0), a.splat(2.0)).to_array()
    }
}

#[test]
fn any_width_tells_what_is_less() {
    let (a, b) = ([1.0, f64::NAN, 0.0, -1.0], [2.0, 1.0, -0.0, f64::NAN]);
    for found in by_each_set(Less(a, b)) {
        assert_eq!(found, [1.0, 2.0, 2.0, 2.0]);
    }
}

#[derive(Clone, Copy)]
struct Sums<'a>(&'a [[f64; 4]]);

impl Kernel for Sums<'_> {
    type Output = [f64; 4];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [f64; 4] {
        let first = lanes.splat(1.0 / 3.0);
        let mut sum = first;
        for four in self.0 {
            let four = lanes.load(four);
            sum = lanes.fused(lanes.add_product(sum, four, first), sum, four);
        }
        lanes.store(sum)
    }
}

#[test]
fn any_width_has_the_same_bits() {
    let fours: Vec<[f64; 4]> = (1..500)
        .map(|i| [1.0, -0.7, 1e-9, 1e9].map(|x| x / f64::from(i)))
        .collect();
    let bits = |sums: [f64; 4]| sums.map(f64::to_bits);
    let expected = bits(Sums(&fours).run(Plain));
    for found in by_each_set(Sums(&fours)) {
        assert_eq!(bits(found), expected);
    }
}

/// Every operation on numbers in eight lanes, by halves and joined again.
#[derive(Clone, Copy)]
struct Formulas<'a>(&'a [[f64; 4]]);

impl Kernel for Formulas<'_> {
    type Output = Vec<[[f64; 4]; 8]>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Vec<[[f64; 4]; 8]> {
        let mut found = Vec::new();
        for fours in self.0.array_windows() {
            let [a, b, c, d] = fours.each_ref().map(|four| lanes.load(four));
            let by_four = formulas(Numbers(lanes, a), Numbers(lanes, b));
            let beside = formulas(Numbers(lanes, c), Numbers(lanes, d));
            let eight = ByEight(lanes);
            let both = formulas(Numbers::of(eight, [a, c]), Numbers::of(eight, [b, d]));
            for ((one, other), both) in by_four.into_iter().zip(beside).zip(both) {
                let halves = [both.four(0), both.four(1)].map(|four| lanes.store(four));
                let expected = [one.four(0), other.four(0)].map(|four| lanes.store(four));
                assert_eq!(halves.map(bits), expected.map(bits));
            }
            found.push(both.map(|of| lanes.store(of.four(1))));
        }
        found
    }
}

/// The bits of four numbers. Processors choose which of the numbers that are none it is.
fn bits(four: [f64; 4]) -> [u64; 4] {
    four.map(|x| if x.is_nan() { f64::NAN } else { x }.to_bits())
}

#[inline(always)]
fn formulas<A: Arithmetic>(a: Numbers<A>, b: Numbers<A>) -> [Numbers<A>; 8] {
    [
        a + b,
        a - b,
        a * b,
        a / b,
        a.fused(b, a.splat(0.3)),
        b.root(),
        a.positive(),
        a.where_less(b, b, a),
    ]
}

#[test]
fn formulas_in_eight_lanes_have_the_bits_of_four() {
    let fours: Vec<[f64; 4]> = (1..100)
        .map(|i| [1.0, -0.7, 1e-9, f64::from(i % 7) - 3.0].map(|x| x / f64::from(i)))
        .chain([
            [0.0, -0.0, f64::NAN, f64::INFINITY],
            [-1.0, 1.0, 0.0, f64::NAN],
        ])
        .collect();
    let bits = |found: Vec<[[f64; 4]; 8]>| -> Vec<[[u64; 4]; 8]> {
        found.into_iter().map(|of| of.map(bits)).collect()
    };
    let expected = bits(Formulas(&fours).run(Plain));
    for found in by_each_set(Formulas(&fours)) {
        assert_eq!(bits(found), expected);
    }
}
