//! About what methods take, by their times at a few sizes around.
//!
//! A method's schedule is the same at all sizes, but for the number of its segments. So its time does not fall as the
//! message grows, and twice the message takes at most twice as long, but for noise in the costs. A line between the
//! times at two sizes is near those between. Where a method is no candidate at the smaller one, as with segments that are
//! longer than that message, its part of the time at the larger one is the least that it takes.

use std::collections::{BTreeMap, HashMap};

use records::{Method, choices::Chosen};

use super::FARTHEST_IN_OUTLINE;

/// One of so many sizes, and the first and last, are those of an outline.
const EVERY: usize = 4;

/// Times of methods at a few message sizes of one collective on one layout.
#[derive(Debug, Clone, Default)]
pub struct Outline(BTreeMap<u64, HashMap<Method, f64>>);

/// A decision, and the times of the methods that were compared, in seconds, for an [`Outline`]: of what is not simulated to its
/// end the least that it takes. None where no nodes are left out.
#[derive(Debug, Clone)]
pub struct OutlinedChoice {
    pub chosen: Chosen,
    pub times: Vec<(Method, f64)>,
}

/// Of what was given up, the time that it surely exceeds.
pub(super) fn times<'a>(
    methods: impl Iterator<Item = &'a Method>,
    values: &[f64],
) -> Vec<(Method, f64)> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let time = |value: f64| if value.is_finite() { value } else { FARTHEST_IN_OUTLINE * least };
    methods.cloned().zip(values.iter().copied().map(time)).collect()
}

impl Outline {
    /// Of what is at ascending sizes, what is to be decided first, and what between these.
    pub fn split<T: Copy>(ascending: &[T]) -> [Vec<T>; 2] {
        let mut parts = [const { Vec::new() }; 2];
        for (place, &one) in ascending.iter().enumerate() {
            let is_first = place.is_multiple_of(EVERY) || place + 1 == ascending.len();
            parts[usize::from(!is_first)].push(one);
        }
        parts
    }

    /// Takes in the times at one more message size, in bytes.
    pub fn add(&mut self, bytes: u64, times: Vec<(Method, f64)>) {
        self.0.insert(bytes, times.into_iter().collect());
    }

    /// Whether it has any times.
    pub(super) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// About what a method takes at a message size; none where nothing tells.
    pub(super) fn seconds(&self, method: &Method, bytes: u64) -> Option<f64> {
        let (last, above) = self.0.range(bytes..).next()?;
        let above = *above.get(method)?;
        let part = |of: u64| if *last > 0 { of as f64 / *last as f64 } else { 1.0 };
        let below = self.0.range(..=bytes).next_back();
        let below = below.and_then(|(first, times)| Some((*first, *times.get(method)?)));
        Some(match below {
            Some((first, below)) if first < *last => {
                let share = (bytes - first) as f64 / (last - first) as f64;
                below + share * (above - below)
            }
            Some((_, below)) => below,
            None => part(bytes) * above,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_sizes_times_are_on_a_line() {
        let [one, other]: [Method; 2] =
            ["own:binomial", "own:pipeline,segment=8KiB"].map(|name| name.parse().unwrap());
        let mut outline = Outline::default();
        assert_eq!(outline.seconds(&one, 64), None);
        outline.add(16, vec![(one.clone(), 1.0)]);
        outline.add(256, vec![(one.clone(), 5.0), (other.clone(), 8.0)]);
        assert_eq!(outline.seconds(&one, 16), Some(1.0));
        assert_eq!(outline.seconds(&one, 76), Some(2.0));
        assert_eq!(outline.seconds(&one, 256), Some(5.0));
        assert_eq!(outline.seconds(&one, 257), None);
        // No candidate at the smaller size.
        assert_eq!(outline.seconds(&other, 128), Some(4.0));
    }

    #[test]
    fn what_was_given_up_takes_a_multiple_of_the_least() {
        let methods: Vec<Method> =
            ["own:binomial", "own:linear"].map(|name| name.parse().unwrap()).to_vec();
        let times = times(methods.iter(), &[2.0, f64::INFINITY]);
        assert_eq!(times[0].1, 2.0);
        assert_eq!(times[1].1, 2.0 * FARTHEST_IN_OUTLINE);
    }
}
