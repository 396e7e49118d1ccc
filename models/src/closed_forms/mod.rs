//! The closed forms: Tables 1 to 4 of the paper, one file per collective, one function per
//! algorithm with its three models beside each other as in the table.
//!
//! # Symbols
//! P processes, m message size, m_s segment size, n_s = ceil(m / m_s) segments, y (gamma) the time
//! to combine a byte. The common sub-expressions are [`Shape::rounds`] k = ceil(lg P) and
//! [`Shape::levels`] h - 1 = ceil(lg(P + 1)) - 1. LogGP's g + (m_s - 1) G is called the *gap*.
//!
//! # At the edges
//! A segment size of 0 or of at least m means one segment of m; an empty message is one segment;
//! (m - 1) G is never negative; a collective of one process costs nothing; a barrier carries
//! nothing. The last segment counts as a whole one, as in the paper.
//!
//! # Printed and corrected
//! The printed forms keep the paper's grouping. A form is corrected where it contradicts its own
//! model (two messages in sequence that cost less than two messages) or a message-level evaluation
//! of the same algorithm with the same parameters. Where a function does not ask for [`Forms`],
//! the two are the same.
//!
//! Three things are not as the print at hand has them, in either version:
//! - Hockney's alpha(m_s) and beta(m_s), which the print lets depend on the size of a message, are
//!   constants: one line through all sizes, as Hockney has it. (A calibration's `hockney_by_size`
//!   tells how far they are from constant; the models with functions of the size are PLogP's.)
//! - Recursive doubling by Hockney, where P is no power of two, is printed with lg P + 2 rounds, and
//!   here has floor(lg P) + 2 as the rows of LogGP and PLogP do: rounds are whole.
//! - Splitted-binary by PLogP is printed with n_s / 2 - 1 periods, and here has ceil(n_s / 2) - 1 as
//!   the rows of Hockney and LogGP do: half of the message has whole segments.
//!
//! # Adding a form
//! Write the function and its [`Text`], and add its line to `FORMS` in the same file.

mod alltoall;
mod barrier;
mod bcast;
mod reduce;
pub mod refined;
pub(crate) mod text;

use records::{Algorithm, Collective};

pub use reduce::{binomial_segmentation_pays, binomial_segmentation_sides};
use text::Texts;
pub use text::{FormulaError, Text};

use crate::{Forms, parameters::Network};

/// What a closed form needs to know of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// What the forms read together is kept apart: a compiler that reads two neighbours at once makes
// the processor wait until both have been written.
#[repr(C)]
pub struct Shape {
    segments: u64,
    procs: u32,
    segment_bytes: u64,
    bytes: u64,
}

impl Shape {
    /// `segment_bytes` 0, or of at least `bytes`, is one segment.
    #[inline]
    pub fn new(procs: u32, bytes: u64, segment_bytes: u64) -> Self {
        let whole = segment_bytes == 0 || segment_bytes >= bytes;
        let (segments, segment_bytes) =
            if whole { (1, bytes) } else { (bytes.div_ceil(segment_bytes), segment_bytes) };
        Shape { procs, bytes, segments, segment_bytes }
    }

    /// The same call with other segments.
    #[inline]
    pub(crate) fn cut(&self, segment_bytes: u64) -> Self {
        Shape::new(self.procs, self.bytes, segment_bytes)
    }

    /// A call of so many segments of so many bytes, whatever the message: a bound of others.
    #[inline]
    pub(crate) fn with_segments(&self, segments: u64, segment_bytes: u64) -> Self {
        Shape { segments, segment_bytes, ..*self }
    }

    /// P, as it was given.
    pub(crate) fn ranks(&self) -> u32 {
        self.procs
    }

    /// m_s, as it is to be given: 0 where the message is whole.
    pub(crate) fn segment(&self) -> u64 {
        if self.segments > 1 { self.segment_bytes } else { 0 }
    }

    /// m, as it was given.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.bytes
    }

    /// P.
    #[inline]
    pub fn procs(&self) -> f64 {
        f64::from(self.procs)
    }

    /// m.
    #[inline]
    pub fn bytes(&self) -> f64 {
        self.bytes as f64
    }

    /// n_s.
    #[inline]
    pub fn segments(&self) -> f64 {
        self.segments as f64
    }

    /// ceil(n_s / 2): the segments of one half of the message.
    #[inline]
    pub fn half_segments(&self) -> f64 {
        self.segments.div_ceil(2) as f64
    }

    /// m_s.
    #[inline]
    pub fn segment_bytes(&self) -> f64 {
        self.segment_bytes as f64
    }

    /// ceil(lg P): rounds of a binomial tree or a dissemination.
    #[inline]
    pub fn rounds(&self) -> f64 {
        f64::from(u32::BITS - self.procs.saturating_sub(1).leading_zeros())
    }

    /// ceil(lg(P + 1)) - 1: edges from the root of a binary tree to its deepest leaf.
    #[inline]
    pub fn levels(&self) -> f64 {
        // ceil(lg(P + 1)) is the number of P's binary digits.
        f64::from(self.procs.max(1).ilog2())
    }

    /// floor(lg P) + 2, or lg P where P is a power of two: rounds of recursive doubling.
    #[inline]
    pub fn doubling_rounds(&self) -> f64 {
        let log = f64::from(self.procs.max(1).ilog2());
        if self.procs.is_power_of_two() { log } else { log + 2.0 }
    }
}

type Formula = fn(&Network, &Shape, Forms) -> f64;

/// One algorithm's closed form, for every model.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// Whether the message is cut into segments.
    pub segmented: bool,
    formula: Formula,
    /// T_max, where the paper has two bounds.
    greatest: Option<Formula>,
    /// Whether the form holds where P is a power of two only.
    powers_of_two: bool,
    text: Texts,
}

impl Form {
    const fn segmented(algorithm: Algorithm, formula: Formula, text: Texts) -> Self {
        Form { segmented: true, ..Form::unsegmented(algorithm, formula, text) }
    }

    const fn unsegmented(algorithm: Algorithm, formula: Formula, text: Texts) -> Self {
        let (greatest, powers_of_two) = (None, false);
        Form { algorithm, segmented: false, formula, greatest, powers_of_two, text }
    }

    const fn with_greatest(self, greatest: Formula) -> Self {
        Form { greatest: Some(greatest), ..self }
    }

    const fn of_powers_of_two(self) -> Self {
        Form { powers_of_two: true, ..self }
    }

    /// Whether the form holds for so many processes; those of the paper do for all.
    pub fn holds(&self, procs: u32) -> bool {
        !self.powers_of_two || procs.is_power_of_two()
    }

    /// Seconds; T_min where the paper has two bounds.
    #[inline]
    pub fn seconds(&self, network: &Network, shape: &Shape, forms: Forms) -> f64 {
        Self::of_several(self.formula, network, shape, forms)
    }

    /// T_max in seconds, where the paper has two bounds.
    pub fn greatest_seconds(&self, network: &Network, shape: &Shape, forms: Forms) -> Option<f64> {
        self.greatest.map(|formula| Self::of_several(formula, network, shape, forms))
    }

    /// The form as text: of T_min where the paper has two bounds.
    pub fn text(&self, network: &Network, shape: &Shape, forms: Forms) -> Text {
        match self.text {
            Texts::One(text) => text,
            Texts::ByCase(text) => text(&network.model, forms, shape),
        }
    }

    #[inline]
    fn of_several(formula: Formula, network: &Network, shape: &Shape, forms: Forms) -> f64 {
        if shape.procs > 1 { formula(network, shape, forms) } else { 0.0 }
    }

    /// Whether the algorithm makes sense for that call, and so may be decided for. The form can be
    /// evaluated in any case.
    pub fn is_candidate(&self, shape: &Shape) -> bool {
        is_candidate(self.algorithm, shape)
    }
}

/// See [`Form::is_candidate`].
pub(crate) fn is_candidate(algorithm: Algorithm, shape: &Shape) -> bool {
    // Each half of the message needs a segment of its own.
    algorithm != Algorithm::SplittedBinary || (shape.segments >= 2 && shape.bytes >= 2)
}

/// The collectives that have closed forms in the paper.
pub const COLLECTIVES: [Collective; 4] =
    [Collective::Barrier, Collective::Bcast, Collective::Reduce, Collective::Alltoall];

/// The closed forms of a collective, in the order of the paper's table; empty where it has none.
pub const fn forms(collective: Collective) -> &'static [Form] {
    match collective {
        Collective::Barrier => barrier::FORMS,
        Collective::Bcast => bcast::FORMS,
        Collective::Reduce => reduce::FORMS,
        Collective::Alltoall => alltoall::FORMS,
        _ => &[],
    }
}

/// The algorithms of a collective that have a closed form, in the order of the paper's table;
/// empty where none has.
pub const fn algorithms(collective: Collective) -> &'static [Algorithm] {
    const BARRIER: [Algorithm; barrier::FORMS.len()] = names(barrier::FORMS);
    const BCAST: [Algorithm; bcast::FORMS.len()] = names(bcast::FORMS);
    const REDUCE: [Algorithm; reduce::FORMS.len()] = names(reduce::FORMS);
    const ALLTOALL: [Algorithm; alltoall::FORMS.len()] = names(alltoall::FORMS);
    match collective {
        Collective::Barrier => &BARRIER,
        Collective::Bcast => &BCAST,
        Collective::Reduce => &REDUCE,
        Collective::Alltoall => &ALLTOALL,
        _ => &[],
    }
}

/// The closed form of an algorithm, if it has one.
#[inline]
pub fn form(collective: Collective, algorithm: Algorithm) -> Option<&'static Form> {
    BY_NAME[collective as usize][algorithm as usize]
}

type ByName = [[Option<&'static Form>; Algorithm::ALL.len()]; Collective::ALL.len()];

/// By collective and algorithm: a search takes as long as the form itself.
static BY_NAME: ByName = {
    let mut by_name: ByName = [[None; Algorithm::ALL.len()]; Collective::ALL.len()];
    let mut collective = 0;
    while collective < COLLECTIVES.len() {
        let forms = forms(COLLECTIVES[collective]);
        let mut form = 0;
        while form < forms.len() {
            by_name[COLLECTIVES[collective] as usize][forms[form].algorithm as usize] =
                Some(&forms[form]);
            form += 1;
        }
        collective += 1;
    }
    by_name
};

const fn names<const N: usize>(forms: &[Form]) -> [Algorithm; N] {
    let mut names = [forms[0].algorithm; N];
    let mut index = 0;
    while index < N {
        names[index] = forms[index].algorithm;
        index += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_complete_and_listed_once() {
        let count = |collective| {
            let mut names = algorithms(collective).to_vec();
            assert_eq!(names.len(), forms(collective).len());
            names.sort_unstable();
            names.dedup();
            names.len()
        };
        // Rows of Tables 1, 2, 3 and 4.
        assert_eq!(COLLECTIVES.map(count), [4, 5, 4, 2]);
        for collective in Collective::ALL {
            assert_eq!(COLLECTIVES.contains(&collective), !algorithms(collective).is_empty());
            for &algorithm in Algorithm::ALL {
                let listed = forms(collective).iter().find(|form| form.algorithm == algorithm);
                let found = form(collective, algorithm);
                assert_eq!(found.map(|form| form.algorithm), listed.map(|form| form.algorithm));
            }
        }
    }

    #[test]
    fn shapes_at_the_edges() {
        let one = Shape::new(2, 100, 0);
        assert_eq!(one, Shape::new(2, 100, 100));
        assert_eq!(one, Shape::new(2, 100, 1 << 40));
        assert_eq!((one.segments(), one.segment_bytes()), (1.0, 100.0));
        let empty = Shape::new(2, 0, 8);
        assert_eq!((empty.segments(), empty.segment_bytes()), (1.0, 0.0));
        let odd = Shape::new(2, 101, 20);
        assert_eq!((odd.segments(), odd.half_segments(), odd.segment_bytes()), (6.0, 3.0, 20.0));
    }

    #[test]
    fn logarithms_are_those_of_the_tables() {
        for procs in 2..=4097_u32 {
            let shape = Shape::new(procs, 0, 0);
            let log = f64::from(procs).log2();
            assert_eq!(shape.rounds(), log.ceil(), "{procs}");
            assert_eq!(shape.levels(), (f64::from(procs) + 1.0).log2().ceil() - 1.0, "{procs}");
            let doubling = if log.fract() == 0.0 { log } else { log.floor() + 2.0 };
            assert_eq!(shape.doubling_rounds(), doubling, "{procs}");
        }
    }
}
