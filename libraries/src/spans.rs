//! From sections at measured communicator sizes to ranges of these, without gaps and with nothing
//! claimed where a method does not hold.

use records::{Collective, Method};

use crate::{
    error::{Result, fail},
    rules::{BytesRange, ProcsRange, Rules},
};

/// Communicator sizes with the same bands.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcsSpan {
    /// The smallest communicator.
    pub first: u32,
    /// The largest one.
    pub last: u32,
    /// Bands of message sizes, the first from 0, neighbours differing; each holds up to the next,
    /// the last one without end.
    pub bands: Vec<BytesRange>,
}

/// The spans of a collective, ascending. What lies outside is left to the library.
///
/// A communicator between two measured sizes takes the smaller one's bands, but for methods that
/// hold at that size alone (`holds_at_one_size`). `one_for_all` says that sizes are not told
/// apart: the one method then holds below and above the sizes measured, too.
///
/// # Errors
/// There are several methods where there can be only one.
pub fn spans(rules: &Rules, one_for_all: bool) -> Result<Vec<ProcsSpan>> {
    let mut spans = Vec::new();
    let ends = rules.sections.iter().skip(1).map(|next| next.procs() - 1);
    let last = rules.sections.last().map(ProcsRange::procs);
    for (section, last) in rules.sections.iter().zip(ends.chain(last)) {
        let bands = bands(rules.collective, section, one_for_all)?;
        let first = section.procs();
        let exact = |method: &Method| holds_at_one_size(rules.collective, method);
        if last > first && bands.iter().any(|band| exact(&band.method)) {
            let mut others = bands.clone();
            for band in others.iter_mut().filter(|band| exact(&band.method)) {
                band.method = Method::Default;
            }
            others.dedup_by(|next, kept| next.method == kept.method);
            spans.push(ProcsSpan { first, last: first, bands });
            spans.push(ProcsSpan { first: first + 1, last, bands: others });
        } else {
            spans.push(ProcsSpan { first, last, bands });
        }
    }
    Ok(spans)
}

/// Splits spans so that a threshold in bytes over all ranks, right for a span's first size, is off
/// by at most a thirty-second at its last.
pub fn narrow(spans: Vec<ProcsSpan>) -> Vec<ProcsSpan> {
    let mut narrow = Vec::new();
    for ProcsSpan { mut first, last, bands } in spans {
        while bands.len() > 1 && first < last {
            let end = last.min(first + first / 32);
            narrow.push(ProcsSpan { first, last: end, bands: bands.clone() });
            first = end + 1;
        }
        if first <= last {
            narrow.push(ProcsSpan { first, last, bands });
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

/// The bands of a section with the default around them.
fn bands(
    collective: Collective,
    section: &ProcsRange,
    one_for_all: bool,
) -> Result<Vec<BytesRange>> {
    if one_for_all {
        let [only] = section.bands.as_slice() else {
            fail!(
                "{} methods for {collective} on {}, where one has to serve for all sizes",
                section.bands.len(),
                section.layout
            );
        };
        return Ok(vec![BytesRange::new(0, only.method.clone())]);
    }
    let default = |from_bytes| BytesRange::new(from_bytes, Method::Default);
    let mut bands = Vec::new();
    if section.bands.first().is_none_or(|first| first.from_bytes > 0) {
        bands.push(default(0));
    }
    bands.extend(section.bands.iter().cloned());
    // Behind the greatest size there is none.
    bands.extend(section.last_bytes.checked_add(1).map(default));
    bands.dedup_by(|next, kept| next.method == kept.method);
    Ok(bands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(from_bytes: u64, method: &str) -> BytesRange {
        BytesRange::new(from_bytes, method.parse().unwrap())
    }

    fn section(procs: u32, bands: Vec<BytesRange>) -> ProcsRange {
        ProcsRange { layout: procs.into(), bands, last_bytes: 1024 }
    }

    #[test]
    fn a_method_for_two_processes_stays_there() {
        let two = || vec![band(1, "native:openmpi:two-procs"), band(64, "native:openmpi:ring")];
        let sections = vec![section(2, two()), section(4, vec![band(1, "native:openmpi:ring")])];
        let rules = Rules { collective: Collective::Allgather, sections };
        let spans = spans(&rules, false).unwrap();
        let told: Vec<_> = spans
            .iter()
            .map(|span| (span.first, span.last, span.bands[1].from_bytes, span.bands.len()))
            .collect();
        assert_eq!(told, [(2, 2, 1, 4), (3, 3, 64, 3), (4, 4, 1, 3)]);
        assert!(spans[1].bands.iter().all(|band| !band.method.to_string().ends_with("two-procs")));
    }

    #[test]
    fn one_method_for_all_sizes_has_no_end() {
        let rules = Rules {
            collective: Collective::Gather,
            sections: vec![section(8, vec![band(64, "native:openmpi:binomial")])],
        };
        let bands = &spans(&rules, true).unwrap()[0].bands;
        assert_eq!(bands, &[band(0, "native:openmpi:binomial")]);
        let two = vec![band(1, "native:openmpi:binomial"), band(64, "native:openmpi:linear")];
        let sections = vec![section(8, two)];
        assert!(spans(&Rules { sections, ..rules }, true).is_err());
    }

    #[test]
    fn narrow_spans_cover_the_same_sizes_and_are_narrow() {
        let bands = vec![band(0, "default"), band(8, "native:openmpi:ring")];
        let narrowed = narrow(vec![ProcsSpan { first: 4, last: 300, bands }]);
        let mut next = 4;
        for span in &narrowed {
            assert_eq!(span.first, next);
            assert!(f64::from(span.last - span.first) <= f64::from(span.first) / 32.0);
            next = span.last + 1;
        }
        assert_eq!(next, 301);
        let single = ProcsSpan { first: 4, last: 300, bands: vec![band(0, "default")] };
        assert_eq!(narrow(vec![single.clone()]), [single]);
    }
}
