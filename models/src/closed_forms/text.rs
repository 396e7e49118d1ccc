//! The closed forms as text.
//!
//! A text is what its function computes, which a test holds: it is read and evaluated. Numbers,
//! symbols, sums, products by juxtaposition, quotients, `max{a, b}`, `min{a, b}`, `ceil`, `floor`
//! and `lg` of what follows. `g(m / 2)` is g at that size, `e(P - 1)` e of that many destinations.
//! A factor that begins with m, as (m_s - 1), counts as 0 where it would be negative.

use super::shape::CallShape;
use crate::{Forms, parameters::PointToPointParameters};

/// A form as people read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// In the symbols of the tables, or of the [refined forms](super::refined).
    Formula(&'static str),
    /// What is done; no formula says what it takes, since it hangs on the tree's shape or on which
    /// message is where first.
    Words(&'static str),
}

/// The text of a form in every case.
#[derive(Debug, Clone, Copy)]
pub(super) enum Texts {
    One(Text),
    /// By the model, the version of the forms and the call.
    ByCase(fn(&PointToPointParameters, Forms, &CallShape) -> Text),
}

/// See [`Text::Formula`].
pub(super) const fn formula(text: &'static str) -> Texts {
    Texts::One(Text::Formula(text))
}

/// See [`Text::Words`].
pub(super) const fn words(text: &'static str) -> Texts {
    Texts::One(Text::Words(text))
}

/// Why a formula cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the formula '{formula}' cannot be read at '{rest}'")]
pub struct FormulaError {
    formula: String,
    rest: String,
}

/// The terms of a formula's sum, each with its sign.
pub(crate) fn terms(formula: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut starts = vec![0];
    for (place, character) in formula.char_indices() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            '+' | '-' if depth == 0 && place > 0 => starts.push(place),
            _ => {}
        }
    }
    starts.push(formula.len());
    let term = |pair: &[usize]| formula[pair[0]..pair[1]].trim().trim_start_matches("+ ");
    starts.windows(2).map(term).collect()
}

/// Evaluates a formula, or a term of one; `value` knows the symbols.
pub(crate) fn evaluate(
    formula: &str,
    value: &mut dyn FnMut(&str) -> Option<f64>,
) -> Result<f64, FormulaError> {
    let mut reader = Reader { formula, at: 0, value };
    match reader.sum() {
        Some(sum) if reader.rest().is_empty() => Ok(sum),
        _ => Err(FormulaError { formula: formula.into(), rest: reader.rest().into() }),
    }
}

/// A formula read up to a place.
struct Reader<'a, 'v> {
    formula: &'a str,
    at: usize,
    value: &'v mut dyn FnMut(&str) -> Option<f64>,
}

/// What takes a size or a number of destinations in brackets and is a symbol together with it.
const APPLIED: [&str; 8] = ["g", "os", "or", "M", "s", "r", "y", "e"];

impl<'a> Reader<'a, '_> {
    /// What is left, without blanks before it.
    fn rest(&mut self) -> &'a str {
        let rest = &self.formula[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.formula[self.at..]
    }

    fn eat(&mut self, wanted: char) -> bool {
        let there = self.rest().starts_with(wanted);
        if there {
            self.at += wanted.len_utf8();
        }
        there
    }

    fn sum(&mut self) -> Option<f64> {
        let mut sum = if self.eat('-') { -self.product()? } else { self.product()? };
        loop {
            if self.eat('+') {
                sum += self.product()?;
            } else if self.eat('-') {
                sum -= self.product()?;
            } else {
                return Some(sum);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut product = self.factor()?;
        loop {
            let begins = |next: char| next == '(' || next.is_ascii_alphanumeric();
            if self.eat('/') {
                product /= self.factor()?;
            } else if self.rest().starts_with(begins) {
                product *= self.factor()?;
            } else {
                return Some(product);
            }
        }
    }

    fn factor(&mut self) -> Option<f64> {
        if self.eat('(') {
            let of_size = self.rest().starts_with('m');
            let sum = self.sum()?;
            return self.eat(')').then_some(if of_size { sum.max(0.0) } else { sum });
        }
        let word = |next: char| next.is_ascii_alphanumeric() || next == '_';
        let rest = self.rest();
        let length = rest.find(|next| !word(next)).unwrap_or(rest.len());
        let name = &rest[..length];
        self.at += length;
        match name {
            "max" => self.list()?.into_iter().reduce(f64::max),
            "min" => self.list()?.into_iter().reduce(f64::min),
            "ceil" => Some(self.factor()?.ceil()),
            "floor" => Some(self.factor()?.floor()),
            "lg" => Some(self.factor()?.log2()),
            _ if name.starts_with(|first: char| first.is_ascii_digit()) => name.parse().ok(),
            _ if APPLIED.contains(&name) && rest[length..].starts_with('(') => {
                // No argument has brackets of its own.
                let whole = &rest[..=rest.find(')')?];
                self.at += whole.len() - length;
                (self.value)(whole)
            }
            _ => (self.value)(name),
        }
    }

    /// Values in braces.
    fn list(&mut self) -> Option<Vec<f64>> {
        let mut values = Vec::new();
        let mut more = self.eat('{');
        while more {
            values.push(self.sum()?);
            more = self.eat(',');
        }
        self.eat('}').then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluated(formula: &str) -> Result<f64, FormulaError> {
        evaluate(formula, &mut |name| match name {
            "P" => Some(8.0),
            "n_s" => Some(3.0),
            "m_s" => Some(0.0),
            "g(m / 2)" => Some(0.5),
            "e(P - 1)" => Some(7.0),
            "g" => Some(2.0),
            _ => None,
        })
    }

    #[test]
    fn formulas_are_read_as_people_read_them() {
        for (formula, wanted) in [
            ("2 P - n_s", 13.0),
            ("(P - 1)(n_s P + 1 - P / 2) g", 7.0 * 21.0 * 2.0),
            ("ceil(lg(P + 1)) + floor(P / 3) - lg P", 3.0),
            ("max{g, n_s, 1} min{P, g}", 6.0),
            ("n_s g(m / 2) + e(P - 1)", 8.5),
            ("5 + (m_s - 1) g", 5.0),
            ("-g + P", 6.0),
        ] {
            assert_eq!(evaluated(formula), Ok(wanted), "{formula}");
        }
    }

    #[test]
    fn what_is_no_formula_is_refused_with_the_place() {
        for (formula, rest) in [("P +", ""), ("P (n_s", ""), ("P ) g", ") g"), ("2 x", "")] {
            let error = evaluated(formula).unwrap_err();
            assert_eq!(error, FormulaError { formula: formula.into(), rest: rest.into() });
        }
    }

    #[test]
    fn terms_keep_their_sign() {
        assert_eq!(
            terms("L + 2 o - g + n_s (P - 1)(g + G)"),
            ["L", "2 o", "- g", "n_s (P - 1)(g + G)"]
        );
        assert_eq!(terms("max{a, b + c}"), ["max{a, b + c}"]);
    }
}
