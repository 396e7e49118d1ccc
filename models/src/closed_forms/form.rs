//! One algorithm's form: what it computes, for which calls, and how it reads.

use records::Algorithm;

use super::{
    shape::CallShape,
    text::{Text, Texts},
};
use crate::{Forms, parameters::Network};

/// How many periods n_s segments take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Periods {
    /// n_s - 1.
    Whole,
    /// ceil(n_s / 2) - 1.
    Half,
    /// Their time is another function of n_s.
    Unknown,
}

pub(super) type FormulaFunction = fn(&Network, &CallShape, Forms) -> f64;

/// One algorithm's closed form, for every model.
#[derive(Debug, Clone, Copy)]
pub struct ClosedForm {
    pub algorithm: Algorithm,
    /// Whether the message is cut into segments.
    pub segmented: bool,
    /// See [`Self::flow`].
    periods: Periods,
    formula: FormulaFunction,
    /// T_max, where the paper has two bounds.
    greatest: Option<FormulaFunction>,
    /// Whether the form holds where P is a power of two only.
    powers_of_two: bool,
    text: Texts,
}

impl ClosedForm {
    pub(super) const fn segmented(
        algorithm: Algorithm,
        formula: FormulaFunction,
        text: Texts,
    ) -> Self {
        ClosedForm { segmented: true, ..ClosedForm::unsegmented(algorithm, formula, text) }
    }

    /// A flow of segments: A + (n_s - 1) B, where A and B are sums and maxima of multiples of what one
    /// segment costs.
    pub(super) const fn flow(algorithm: Algorithm, formula: FormulaFunction, text: Texts) -> Self {
        let periods = Periods::Whole;
        ClosedForm { periods, ..ClosedForm::segmented(algorithm, formula, text) }
    }

    /// A flow of the segments of half a message: A + (ceil(n_s / 2) - 1) B, with A and B as in [`ClosedForm::flow`].
    pub(super) const fn flow_of_halves(
        algorithm: Algorithm,
        formula: FormulaFunction,
        text: Texts,
    ) -> Self {
        ClosedForm { periods: Periods::Half, ..ClosedForm::flow(algorithm, formula, text) }
    }

    pub(super) const fn unsegmented(
        algorithm: Algorithm,
        formula: FormulaFunction,
        text: Texts,
    ) -> Self {
        let (greatest, powers_of_two) = (None, false);
        let (segmented, periods) = (false, Periods::Unknown);
        ClosedForm { algorithm, segmented, periods, formula, greatest, powers_of_two, text }
    }

    pub(super) const fn with_greatest(self, greatest: FormulaFunction) -> Self {
        ClosedForm { greatest: Some(greatest), ..self }
    }

    pub(super) const fn of_powers_of_two(self) -> Self {
        ClosedForm { powers_of_two: true, ..self }
    }

    /// Whether the form holds for so many processes; those of the paper do for all.
    pub fn holds(&self, procs: u32) -> bool {
        !self.powers_of_two || procs.is_power_of_two()
    }

    /// Seconds; T_min where the paper has two bounds.
    #[inline]
    pub fn seconds(&self, network: &Network, shape: &CallShape, forms: Forms) -> f64 {
        if shape.procs > 1 { (self.formula)(network, shape, forms) } else { 0.0 }
    }

    /// Of a flow, seconds that its segments take after the first if there are `segments` of them, which
    /// need be no whole number: (n_s - 1) B, or (n_s / 2 - 1) B. None of other forms.
    pub(crate) fn periods(
        &self,
        network: &Network,
        shape: &CallShape,
        segments: f64,
    ) -> Option<f64> {
        let of = |segments: u64| {
            let shape = shape.with_segments(segments, shape.segment_bytes);
            self.seconds(network, &shape, Forms::Corrected)
        };
        match self.periods {
            Periods::Whole => Some((segments - 1.0) * (of(2) - of(1))),
            Periods::Half => Some((segments / 2.0 - 1.0) * (of(3) - of(1))),
            Periods::Unknown => None,
        }
    }

    /// T_max in seconds, where the paper has two bounds.
    pub fn greatest_seconds(
        &self,
        network: &Network,
        shape: &CallShape,
        forms: Forms,
    ) -> Option<f64> {
        self.greatest.map(|greatest| match shape.procs {
            0 | 1 => 0.0,
            _ => greatest(network, shape, forms),
        })
    }

    /// The form as text: of T_min where the paper has two bounds.
    pub fn text(&self, network: &Network, shape: &CallShape, forms: Forms) -> Text {
        match self.text {
            Texts::One(text) => text,
            Texts::ByCase(text) => text(&network.model, forms, shape),
        }
    }
}
