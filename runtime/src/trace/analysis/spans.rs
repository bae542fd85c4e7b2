//! Sets of moments, as spans that do not overlap.

/// Disjoint spans of time in order, in ns, with what they measure.
#[derive(Default)]
pub(super) struct Spans {
    pub(super) spans: Vec<(u64, u64)>,
    /// The total length of the spans before each one.
    before: Vec<u64>,
}

impl Spans {
    /// Makes the union of spans, which may be given in any order.
    pub(super) fn union(mut parts: Vec<(u64, u64)>) -> Self {
        parts.sort_unstable();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in parts {
            match spans.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => spans.push((begin, end)),
            }
        }
        let before = spans
            .iter()
            .scan(0, |sum, (begin, end)| {
                let before = *sum;
                *sum += end - begin;
                Some(before)
            })
            .collect();
        Self { spans, before }
    }

    pub(super) fn end(&self) -> Option<u64> {
        self.spans.last().map(|&(_, end)| end)
    }

    /// Returns how much of the time before `at` they cover.
    pub(super) fn until(&self, at: u64) -> u64 {
        let begun = self.spans.partition_point(|&(begin, _)| begin < at);
        let Some(index) = begun.checked_sub(1) else {
            return 0;
        };
        let (begin, end) = self.spans[index];
        self.before[index] + end.min(at) - begin
    }

    /// Returns how much of a piece of time they cover.
    pub(super) fn within(&self, begin: u64, end: u64) -> u64 {
        self.until(end) - self.until(begin)
    }

    /// Returns the first moment from `at` on that they cover.
    pub(super) fn next(&self, at: u64) -> Option<u64> {
        let index = self.spans.partition_point(|&(_, end)| end <= at);
        self.spans.get(index).map(|&(begin, _)| begin.max(at))
    }

    /// Returns the parts of a piece of time that they do not cover.
    pub(super) fn gaps(&self, begin: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let index = self.spans.partition_point(|&(_, e)| e <= begin);
        let holes = self.spans[index..].iter();
        let holes = holes.take_while(move |&&(b, _)| b < end).copied();
        let mut from = begin;
        holes.chain([(end, end)]).filter_map(move |(b, e)| {
            let gap = (from, b.max(from));
            from = e;
            (gap.0 < gap.1).then_some(gap)
        })
    }
}
