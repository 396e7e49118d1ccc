//! The closed forms of the paper: Table 1 (`barrier.rs`), 2 (`bcast.rs`), 3 (`reduce.rs`) and 4
//! (`alltoall.rs`), one function per algorithm with its three models beside each other as in the table.
//!
//! # Symbols
//! P processes, m message size, m_s segment size, n_s = ceil(m / m_s) segments, y (gamma) the time
//! to combine a byte. The common sub-expressions are [`CallShape::rounds`] k = ceil(lg P) and
//! [`CallShape::depth`] h - 1 = ceil(lg(P + 1)) - 1. LogGP's g + (m_s - 1) G is called the *gap*.
//!
//! # At the edges
//! A segment size of 0 or of at least m means one segment of m; an empty message is one segment;
//! (m - 1) G is never negative; a collective of one process costs nothing; a barrier carries
//! nothing. The last segment counts as a whole one, as in the paper.
//!
//! # Printed and corrected
//! The printed forms keep the paper's grouping. A form is corrected where it contradicts its own
//! model (two messages in sequence that cost less than two messages) or a message-level evaluation
//! of the same algorithm with the same parameters. Where a function does not ask for [`Forms`](crate::Forms),
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
mod form;
mod reduce;
pub mod refined;
mod shape;
mod symbols;
mod text;

use records::{Algorithm, Collective};

pub use form::ClosedForm;
pub use reduce::{binomial_segmentation_pays, binomial_segmentation_sides};
pub use shape::CallShape;
pub(crate) use symbols::symbol;
pub use text::{FormulaError, Text};
pub(crate) use text::{evaluate, terms};

/// The collectives that have closed forms in the paper.
pub const COLLECTIVES: [Collective; 4] =
    [Collective::Barrier, Collective::Bcast, Collective::Reduce, Collective::Alltoall];

/// The closed forms of a collective, in the order of the paper's table; empty where it has none.
pub const fn forms(collective: Collective) -> &'static [ClosedForm] {
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
pub fn form(collective: Collective, algorithm: Algorithm) -> Option<&'static ClosedForm> {
    BY_NAME[collective as usize][algorithm as usize]
}

type ByName = [[Option<&'static ClosedForm>; Algorithm::ALL.len()]; Collective::ALL.len()];

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

const fn names<const N: usize>(forms: &[ClosedForm]) -> [Algorithm; N] {
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
}
