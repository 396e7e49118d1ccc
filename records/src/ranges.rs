//! Which of several choices holds for a message of some size: the one form of rules, of profiles and of what the preload
//! library looks up.

use std::{collections::BTreeMap, ops::Deref};

use serde::{Deserialize, Serialize};

use crate::{Collective, Layout, Method, Point};

/// Message sizes that have one choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeRange<T> {
    /// The smallest, in bytes.
    pub first_bytes: u64,
    /// The largest, which belongs to it.
    pub last_bytes: u64,
    #[serde(flatten)]
    pub choice: T,
}

impl<T> SizeRange<T> {
    pub fn new(first_bytes: u64, last_bytes: u64, choice: impl Into<T>) -> Self {
        SizeRange { first_bytes, last_bytes, choice: choice.into() }
    }

    /// The size after the largest, if there is one.
    pub fn next_bytes(&self) -> Option<u64> {
        self.last_bytes.checked_add(1)
    }
}

/// A method that holds for a range of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeMethod {
    /// [`Method::Default`] leaves the call to the library.
    pub method: Method,
    /// Time of the default over its time, where that is known.
    #[serde(default)]
    pub gain: Option<f64>,
}

impl From<Method> for RangeMethod {
    fn from(method: Method) -> Self {
        RangeMethod { method, gain: None }
    }
}

/// Ranges of message sizes, ascending, without overlap. What lies in none of them has no choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<SizeRange<T>>")]
pub struct Ranges<T>(Vec<SizeRange<T>>);

/// Ranges that overlap or do not ascend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct RangesError {
    /// Which number is wrong, such as `[1].first_bytes`; ranges count from 0.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Ranges(Vec::new())
    }
}

impl<T> Deref for Ranges<T> {
    type Target = [SizeRange<T>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> IntoIterator for Ranges<T> {
    type Item = SizeRange<T>;
    type IntoIter = std::vec::IntoIter<SizeRange<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> TryFrom<Vec<SizeRange<T>>> for Ranges<T> {
    type Error = RangesError;

    /// # Errors
    /// A range ends before it begins, or begins inside or below the one before it.
    fn try_from(ranges: Vec<SizeRange<T>>) -> Result<Self, RangesError> {
        let mut before = None;
        for (index, &SizeRange { first_bytes, last_bytes, .. }) in ranges.iter().enumerate() {
            let wrong = |field: &str, problem| {
                Err(RangesError { field: format!("[{index}].{field}"), problem })
            };
            if before.is_some_and(|before| first_bytes <= before) {
                let problem = format!(
                    "is {first_bytes}, inside the range before it; expected more than its last_bytes"
                );
                return wrong("first_bytes", problem);
            }
            if last_bytes < first_bytes {
                let problem = format!("is {last_bytes}; expected {first_bytes} or more");
                return wrong("last_bytes", problem);
            }
            before = Some(last_bytes);
        }
        Ok(Ranges(ranges))
    }
}

impl<T> Ranges<T> {
    /// What holds from each of these sizes on up to the next, the last up to `last_bytes`; what begins beyond that is
    /// left out.
    pub fn from_starts(starts: BTreeMap<u64, T>, last_bytes: u64) -> Self {
        let mut ranges: Vec<SizeRange<T>> = Vec::new();
        for (first_bytes, choice) in
            starts.into_iter().take_while(|(first, _)| *first <= last_bytes)
        {
            if let Some(before) = ranges.last_mut() {
                before.last_bytes = first_bytes - 1;
            }
            ranges.push(SizeRange { first_bytes, last_bytes, choice });
        }
        Ranges(ranges)
    }

    /// What holds for a message.
    pub fn at(&self, bytes: u64) -> Option<&T> {
        let after = self.0.partition_point(|range| range.first_bytes <= bytes);
        let range = &self.0[after.checked_sub(1)?];
        (bytes <= range.last_bytes).then_some(&range.choice)
    }

    /// These ranges with something else, without those for which there is nothing.
    pub fn filter_map<'a, U>(&'a self, mut to: impl FnMut(&'a T) -> Option<U>) -> Ranges<U> {
        let range = |&SizeRange { first_bytes, last_bytes, ref choice }: &'a SizeRange<T>| {
            Some(SizeRange { first_bytes, last_bytes, choice: to(choice)? })
        };
        Ranges(self.0.iter().filter_map(range).collect())
    }

    /// Neighbours with nothing between them that are the same as one, which has the choice of the first.
    #[must_use]
    pub fn merged(self, is_same: impl Fn(&T, &T) -> bool) -> Self {
        let mut merged: Vec<SizeRange<T>> = Vec::new();
        for range in self.0 {
            match merged.last_mut() {
                Some(last)
                    if last.next_bytes() == Some(range.first_bytes)
                        && is_same(&last.choice, &range.choice) =>
                {
                    last.last_bytes = range.last_bytes;
                }
                _ => merged.push(range),
            }
        }
        Ranges(merged)
    }
}

impl<T: Clone> Ranges<T> {
    /// These ranges extended to all sizes, with `other` before, between and after the ranges.
    #[must_use]
    pub fn filled(self, other: &T) -> Self {
        let mut filled = Vec::new();
        let mut next = Some(0);
        let gap =
            |first_bytes, last_bytes| SizeRange { first_bytes, last_bytes, choice: other.clone() };
        for range in self.0 {
            if let Some(next) = next.filter(|next| *next < range.first_bytes) {
                filled.push(gap(next, range.first_bytes - 1));
            }
            next = range.next_bytes();
            filled.push(range);
        }
        filled.extend(next.map(|next| gap(next, u64::MAX)));
        Ranges(filled)
    }
}

impl<T: Clone + PartialEq> Ranges<T> {
    /// Where both have the same.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        let mut common = Vec::new();
        for one in &self.0 {
            for two in other.iter().filter(|two| two.choice == one.choice) {
                let first_bytes = one.first_bytes.max(two.first_bytes);
                let last_bytes = one.last_bytes.min(two.last_bytes);
                if first_bytes <= last_bytes {
                    common.push(SizeRange { first_bytes, last_bytes, choice: one.choice.clone() });
                }
            }
        }
        Ranges(common)
    }
}

impl<T> Ranges<Vec<T>> {
    /// What was chosen at some sizes as ranges: neighbouring sizes with one method are one, from the least to the
    /// greatest size.
    ///
    /// A threshold between two methods lies at the `crossing` of their times, from which size on the second is
    /// faster, if that falls between the two sizes, else at their geometric mean. Between a method and the default it
    /// lies at the method's size: nothing is claimed beyond what was chosen.
    pub fn of_grid(
        sizes: BTreeMap<u64, T>,
        method: impl Fn(&T) -> &Method,
        crossing: impl Fn(&Method, &Method, u64, u64) -> Option<u64>,
    ) -> Self {
        let mut joined: BTreeMap<u64, Vec<T>> = BTreeMap::new();
        let mut below = 0;
        for (bytes, choice) in sizes {
            let first = match joined.last_entry() {
                None => bytes,
                Some(mut before) => match (method(&before.get()[0]), method(&choice)) {
                    (last, next) if last == next => {
                        before.get_mut().push(choice);
                        below = bytes;
                        continue;
                    }
                    (Method::Default, _) => bytes,
                    (_, Method::Default) => below + 1,
                    (last, next) => crossing(last, next, below, bytes)
                        .filter(|crossed| (below + 1..=bytes).contains(crossed))
                        .unwrap_or_else(|| between(below, bytes)),
                },
            };
            joined.insert(first, vec![choice]);
            below = bytes;
        }
        Ranges::from_starts(joined, below)
    }
}

/// The geometric mean of two sizes, above the lower one and at most the upper one.
fn between(low: u64, high: u64) -> u64 {
    let mean = ((low.max(1) as f64) * (high as f64)).sqrt().round() as u64;
    mean.clamp(low + 1, high)
}

/// What was chosen at some points, for each collective and layout: from each size on up to the next, the last without end.
pub fn held<T>(
    points: impl IntoIterator<Item = (Point, T)>,
) -> BTreeMap<(Collective, Layout), Ranges<T>> {
    let lines = by_line(points).into_iter();
    lines.map(|(line, sizes)| (line, Ranges::from_starts(sizes, u64::MAX))).collect()
}

/// Points by their collective and layout, with the sizes of each.
pub fn by_line<T>(
    points: impl IntoIterator<Item = (Point, T)>,
) -> BTreeMap<(Collective, Layout), BTreeMap<u64, T>> {
    let mut lines: BTreeMap<_, BTreeMap<u64, T>> = BTreeMap::new();
    for (point, of) in points {
        lines.entry(point.line()).or_default().insert(point.bytes, of);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges(of: &[(u64, u64, u8)]) -> Ranges<u8> {
        let range = |&(first, last, choice): &(u64, u64, u8)| SizeRange::new(first, last, choice);
        of.iter().map(range).collect::<Vec<_>>().try_into().unwrap()
    }

    fn told<T: Clone>(ranges: &Ranges<T>) -> Vec<(u64, u64, T)> {
        ranges.iter().map(|of| (of.first_bytes, of.last_bytes, of.choice.clone())).collect()
    }

    #[test]
    fn a_message_finds_its_range_and_only_that() {
        let some = ranges(&[(0, 8, 1), (9, 9, 2), (1024, 65536, 3)]);
        let found = [0, 8, 9, 10, 1024, 65536, 65537].map(|bytes| some.at(bytes).copied());
        assert_eq!(found, [Some(1), Some(1), Some(2), None, Some(3), Some(3), None]);
        assert_eq!(Ranges::<u8>::default().at(1), None);
        assert_eq!(ranges(&[(5, u64::MAX, 1)]).at(u64::MAX), Some(&1));
    }

    #[test]
    fn what_overlaps_or_does_not_ascend_is_refused_by_its_number() {
        let refused = |of: &[(u64, u64)]| {
            let range = |&(first, last): &(u64, u64)| SizeRange::new(first, last, 1_u8);
            let ranges: Vec<SizeRange<u8>> = of.iter().map(range).collect();
            Ranges::try_from(ranges).unwrap_err().to_string()
        };
        let inside = "[1].first_bytes: is 8, inside the range before it; expected more than its \
                      last_bytes";
        assert_eq!(refused(&[(0, 8), (8, 9)]), inside);
        assert!(refused(&[(5, u64::MAX), (u64::MAX, u64::MAX)]).starts_with("[1].first_bytes"));
        assert_eq!(refused(&[(4, 3)]), "[0].last_bytes: is 3; expected 4 or more");
    }

    #[test]
    fn what_begins_somewhere_holds_up_to_the_next() {
        let starts = BTreeMap::from([(4, 1), (8, 2), (100, 3)]);
        assert_eq!(told(&Ranges::from_starts(starts, 64)), [(4, 7, 1), (8, 64, 2)]);
    }

    #[test]
    fn gaps_are_filled_and_equal_neighbours_merged() {
        let some = ranges(&[(4, 7, 1), (8, 9, 2), (12, 13, 2)]);
        let all = [(0, 3, 0), (4, 7, 1), (8, 9, 2), (10, 11, 0), (12, 13, 2), (14, u64::MAX, 0)];
        assert_eq!(told(&some.clone().filled(&0)), all);
        assert_eq!(told(&ranges(&[]).filled(&0)), [(0, u64::MAX, 0)]);
        assert_eq!(told(&ranges(&[(0, u64::MAX, 1)]).filled(&0)), [(0, u64::MAX, 1)]);
        let merged = some.filled(&2).merged(|one, next| one == next);
        assert_eq!(told(&merged), [(0, 3, 2), (4, 7, 1), (8, u64::MAX, 2)]);
        assert_eq!(told(&ranges(&[(1, 2, 1), (4, 5, 1)]).merged(|_, _| true)).len(), 2, "a gap");
    }

    #[test]
    fn neighbours_are_joined_and_thresholds_lie_where_predictions_cross() {
        let (a, b) = ("own:binomial", "own:pipeline,segment=8KiB");
        let sizes = [(1024, a), (2048, a), (8192, b), (16384, b), (65536, "default"), (262_144, a)];
        let sizes: BTreeMap<u64, Method> =
            sizes.into_iter().map(|(bytes, name)| (bytes, name.parse().unwrap())).collect();
        let at = |crossed: Option<u64>| {
            let crossing = |_: &Method, _: &Method, _: u64, _: u64| crossed;
            let ranges = Ranges::of_grid(sizes.clone(), |method| method, crossing);
            let end = ranges.last().unwrap().last_bytes;
            let starts = ranges.iter().map(|of| (of.first_bytes, of.choice.len()));
            (starts.collect::<Vec<_>>(), end)
        };
        let wanted = |crossed| vec![(1024, 2), (crossed, 2), (16385, 1), (262_144, 1)];
        assert_eq!(at(Some(3000)), (wanted(3000), 262_144));
        assert_eq!(at(None), (wanted(4096), 262_144));
        assert_eq!(at(Some(9000)), (wanted(4096), 262_144), "it falls outside");
    }

    proptest! {
        /// Whatever was chosen at a measured size, the ranges say the same there.
        #[test]
        fn ranges_agree_with_every_choice(
            methods in proptest::collection::vec(0_usize..3, 1..20),
            crossed in proptest::option::of(any::<u64>()),
        ) {
            let names = ["default", "own:linear", "own:binomial"].map(|of| of.parse::<Method>().unwrap());
            let sizes: BTreeMap<u64, &Method> =
                methods.iter().zip(0..).map(|(&index, power)| (1 << power, &names[index])).collect();
            let ranges = Ranges::of_grid(sizes.clone(), |method| method, |_, _, _, _| crossed);
            for pair in ranges.windows(2) {
                prop_assert_eq!(pair[0].last_bytes + 1, pair[1].first_bytes);
                prop_assert_ne!(pair[0].choice[0], pair[1].choice[0]);
            }
            for (bytes, method) in sizes {
                prop_assert_eq!(ranges.at(bytes).unwrap()[0], method);
            }
        }

        /// Where both have a choice and it is the same.
        #[test]
        fn what_two_have_in_common_is_what_both_say(
            starts in proptest::collection::vec(proptest::collection::btree_map(0_u64..64, 0_u8..3, 1..8), 2),
            bytes in 0_u64..80,
        ) {
            let [one, two] = [0, 1].map(|which| Ranges::from_starts(starts[which].clone(), 64));
            let wanted = one.at(bytes).filter(|choice| two.at(bytes) == Some(choice));
            let common = one.common(&two);
            prop_assert_eq!(common.at(bytes), wanted);
            prop_assert!(Ranges::try_from(common.to_vec()).is_ok());
        }
    }
}
