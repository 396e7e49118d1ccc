//! How often each guideline was judged and found violated.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Collective, Layout, Point,
    violations::{Class, Count, FasterAlternative, JudgedGuideline, Violation},
};

/// Communicators and message sizes.
type Places = BTreeSet<(Layout, u64)>;

/// A guideline on a communicator: of a pattern the right side in words.
type GuidelineKey = (Class, Collective, Layout, String);

/// Sizes judged and violated, per guideline and communicator.
#[derive(Default)]
pub(crate) struct ViolationCounts(BTreeMap<GuidelineKey, (BTreeSet<u64>, BTreeSet<u64>)>);

impl ViolationCounts {
    fn entry(
        &mut self,
        class: Class,
        point: Point,
        better: &FasterAlternative,
    ) -> &mut (BTreeSet<u64>, BTreeSet<u64>) {
        let right = if class == Class::Pattern { better.to_string() } else { String::new() };
        self.0.entry((class, point.collective, point.layout, right)).or_default()
    }

    pub(crate) fn judged(&mut self, class: Class, point: Point, better: &FasterAlternative) {
        self.entry(class, point, better).0.insert(point.bytes);
    }

    pub(crate) fn violated(&mut self, violation: &Violation) {
        let Violation { class, point, .. } = *violation;
        self.entry(class, point, &violation.better).1.insert(point.bytes);
    }

    pub(crate) fn judged_guidelines(&self) -> Vec<JudgedGuideline> {
        let of_each =
            |(key, (sizes, violated)): (&GuidelineKey, &(BTreeSet<u64>, BTreeSet<u64>))| {
                let (class, collective, layout, right) = key.clone();
                let [sizes, violated] = [sizes, violated].map(|set| set.iter().copied().collect());
                JudgedGuideline { class, collective, layout, right, sizes, violated }
            };
        self.0.iter().map(of_each).collect()
    }

    /// A point counts once, whatever the number of patterns.
    pub(crate) fn into_counts(self) -> Vec<Count> {
        let mut points: BTreeMap<(Class, Collective), [Places; 2]> = BTreeMap::new();
        for ((class, collective, layout, _), (judged, violated)) in self.0 {
            let of_class = points.entry((class, collective)).or_default();
            of_class[0].extend(judged.into_iter().map(|bytes| (layout, bytes)));
            of_class[1].extend(violated.into_iter().map(|bytes| (layout, bytes)));
        }
        let count = |((class, collective), [judged, violated]): (_, [Places; 2])| Count {
            class,
            collective,
            points: judged.len() as u32,
            violated: violated.len() as u32,
        };
        points.into_iter().map(count).collect()
    }
}
