//! From points on a grid to the ranges that a rules file states.

use libraries::rules::{LayoutRanges, Rules};
use models::Predictor;
use records::{Method, RangeMethod, Ranges, choices::Chosen, ranges::by_line};
use statistics::geometric_mean;

use super::predicted::crossing;

/// The rules of what was chosen, with thresholds as [`Ranges::of_grid`] has them: where one method gives way to another
/// between two measured sizes, at the size from which that one is predicted to be faster, if any.
pub fn rules(choices: &[Chosen], predictor: Option<&Predictor>) -> Vec<Rules> {
    let mut rules: Vec<Rules> = Vec::new();
    let lines = by_line(choices.iter().map(|choice| (choice.point, choice)));
    for ((collective, layout), sizes) in lines {
        let crossing = |below: &Method, above: &Method, low, high| {
            crossing(predictor?, (collective, layout), [below, above], [low, high])
        };
        let ranges = Ranges::of_grid(sizes, |choice| &choice.method, crossing);
        let ranges = ranges.filter_map(|same| {
            Some(RangeMethod { method: same[0].method.clone(), gain: gain(same) })
        });
        let section = LayoutRanges { layout, ranges };
        match rules.last_mut() {
            Some(last) if last.collective == collective => last.sections.push(section),
            _ => rules.push(Rules { collective, sections: vec![section] }),
        }
    }
    rules
}

/// How many times as fast as the default, on geometric average, where that is known; equal times claim nothing.
fn gain(choices: &[&Chosen]) -> Option<f64> {
    let gains: Vec<f64> = choices
        .iter()
        .filter(|choice| choice.default_seconds != Some(choice.seconds))
        .filter_map(|choice| choice.speed_up())
        .collect();
    geometric_mean(&gains)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{Collective, Point};

    #[test]
    fn each_layout_has_its_ranges_and_what_they_gain() {
        let choice = |layout: &str, bytes, method: &str, seconds| {
            let point = Point::new(Collective::Bcast, layout.parse().unwrap(), bytes);
            Chosen::measured(point, method.parse().unwrap(), seconds, 4.0)
        };
        let (a, b) = ("native:openmpi:binomial", "native:openmpi:linear");
        let choices = [
            choice("4", 8, a, 1.0),
            choice("8", 1, a, 1.0),
            choice("8", 4, a, 4.0),
            choice("8", 16, a, 0.25),
            choice("8", 64, b, 4.0),
        ];
        let rules = rules(&choices, None);
        let [bcast] = rules.as_slice() else { panic!("{rules:?}") };
        let [four, eight] = bcast.sections.as_slice() else { panic!("{bcast:?}") };
        assert_eq!((four.procs(), four.ranges.len()), (4, 1));
        let told: Vec<_> = eight
            .ranges
            .iter()
            .map(|of| (of.first_bytes, of.last_bytes, of.choice.method.to_string()))
            .collect();
        assert_eq!(told, [(1, 31, a.into()), (32, 64, b.to_owned())]);
        let gains = [0, 1].map(|index: usize| eight.ranges[index].choice.gain);
        assert!((gains[0].unwrap() - 8.0).abs() < 1e-9 && gains[1].is_none(), "{gains:?}");
    }
}
