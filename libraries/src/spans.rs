//! From sections at measured communicator sizes to ranges of these, without gaps and with nothing
//! claimed where a method does not hold.

use records::{Collective, Method, RangeMethod, Ranges};

use crate::{
    error::{Result, fail},
    rules::{LayoutRanges, Rules},
};

/// Communicator sizes with the same ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcsSpan {
    /// The smallest communicator.
    pub first: u32,
    /// The largest one.
    pub last: u32,
    /// Of all message sizes; neighbours differ.
    pub ranges: Ranges<RangeMethod>,
}

/// The spans of a collective, ascending. What lies outside is left to the library.
///
/// A communicator between two measured sizes takes the smaller one's ranges, but for methods that
/// hold at that size alone (`holds_at_one_size`). `one_for_all` says that sizes are not distinguished
/// apart: the one method then holds below and above the sizes measured, too.
///
/// # Errors
/// There are several methods where there can be only one.
pub fn spans(rules: &Rules, one_for_all: bool) -> Result<Vec<ProcsSpan>> {
    let mut spans = Vec::new();
    let ends = rules.sections.iter().skip(1).map(|next| next.procs() - 1);
    let last = rules.sections.last().map(LayoutRanges::procs);
    for (section, last) in rules.sections.iter().zip(ends.chain(last)) {
        let ranges = ranges(rules.collective, section, one_for_all)?;
        let first = section.procs();
        let exact = |method: &Method| holds_at_one_size(rules.collective, method);
        if last > first && ranges.iter().any(|range| exact(&range.choice.method)) {
            let others = ranges.filter_map(|one| (!exact(&one.method)).then(|| one.clone()));
            spans.push(ProcsSpan { first, last: first, ranges });
            spans.push(ProcsSpan { first: first + 1, last, ranges: with_default(others) });
        } else {
            spans.push(ProcsSpan { first, last, ranges });
        }
    }
    Ok(spans)
}

/// Splits spans so that a threshold in bytes over all ranks, right for a span's first size, is off
/// by at most a thirty-second at its last.
pub fn narrow(spans: Vec<ProcsSpan>) -> Vec<ProcsSpan> {
    let mut narrow = Vec::new();
    for ProcsSpan { mut first, last, ranges } in spans {
        while ranges.len() > 1 && first < last {
            let end = last.min(first + first / 32);
            narrow.push(ProcsSpan { first, last: end, ranges: ranges.clone() });
            first = end + 1;
        }
        if first <= last {
            narrow.push(ProcsSpan { first, last, ranges });
        }
    }
    narrow
}

/// Whether a method chosen for one communicator size may fail, or be another, at the next.
fn holds_at_one_size(collective: Collective, method: &Method) -> bool {
    use records::Algorithm as A;
    match method.algorithm() {
        Some(A::TwoProcs) => true,
        Some(A::RecursiveDoubling | A::NeighborExchange) => {
            matches!(collective, Collective::Allgather | Collective::Allgatherv)
        }
        _ => false,
    }
}

/// The ranges of a section with the default around them.
fn ranges(
    collective: Collective,
    section: &LayoutRanges,
    one_for_all: bool,
) -> Result<Ranges<RangeMethod>> {
    if one_for_all {
        let [only] = &section.ranges[..] else {
            fail!(
                "{} methods for {collective} on {}, where one has to serve for all sizes",
                section.ranges.len(),
                section.layout
            );
        };
        return Ok(Ranges::default().filled(&only.choice.method.clone().into()));
    }
    Ok(with_default(section.ranges.clone()))
}

/// With the default where there is nothing.
fn with_default(ranges: Ranges<RangeMethod>) -> Ranges<RangeMethod> {
    ranges.filled(&Method::Default.into()).merged(|one, next| one.method == next.method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::section;

    #[test]
    fn a_method_for_two_processes_stays_there() {
        let (two, ring) = ("native:openmpi:two-procs", "native:openmpi:ring");
        let sections =
            vec![section("2", &[(1, two), (64, ring)], 1024), section("4", &[(1, ring)], 1024)];
        let rules = Rules { collective: Collective::Allgather, sections };
        let spans = spans(&rules, false).unwrap();
        let told: Vec<_> = spans
            .iter()
            .map(|span| (span.first, span.last, span.ranges[1].first_bytes, span.ranges.len()))
            .collect();
        assert_eq!(told, [(2, 2, 1, 4), (3, 3, 64, 3), (4, 4, 1, 3)]);
        let is_for_two = |method: &Method| method.to_string().ends_with("two-procs");
        assert!(spans[1].ranges.iter().all(|range| !is_for_two(&range.choice.method)));
    }

    #[test]
    fn one_method_for_all_sizes_has_no_end() {
        let (binomial, linear) = ("native:openmpi:binomial", "native:openmpi:linear");
        let rules = |of: &[(u64, &str)]| Rules {
            collective: Collective::Gather,
            sections: vec![section("8", of, 1024)],
        };
        let all = &spans(&rules(&[(64, binomial)]), true).unwrap()[0].ranges;
        assert_eq!((all.len(), all[0].first_bytes, all[0].last_bytes), (1, 0, u64::MAX));
        assert_eq!(all[0].choice.method.to_string(), binomial);
        assert!(spans(&rules(&[(1, binomial), (64, linear)]), true).is_err());
    }

    #[test]
    fn narrow_spans_cover_the_same_sizes_and_are_narrow() {
        let of = |of: &[(u64, &str)]| section("4", of, u64::MAX).ranges;
        let ranges = of(&[(0, "default"), (8, "native:openmpi:ring")]);
        let narrowed = narrow(vec![ProcsSpan { first: 4, last: 300, ranges }]);
        let mut next = 4;
        for span in &narrowed {
            assert_eq!(span.first, next);
            assert!(f64::from(span.last - span.first) <= f64::from(span.first) / 32.0);
            next = span.last + 1;
        }
        assert_eq!(next, 301);
        let single = ProcsSpan { first: 4, last: 300, ranges: of(&[(0, "default")]) };
        assert_eq!(narrow(vec![single.clone()]), [single]);
    }
}
