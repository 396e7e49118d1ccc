//! Which segment sizes of several methods are candidates, where any size may be.
//!
//! A search for the best size takes hundreds of evaluations. Most methods are neither the cheapest nor a
//! tie with it, whatever their segments, which some ten evaluations tell
//! ([`Search::is_surely_apart`]) once the method that looks cheapest has been searched.

use records::Method;

use super::{
    error::DecideError,
    segments::{Search, Stage},
};
use crate::{
    Point, Predictor,
    predict::{CostSource, Spread, check, equal},
};

/// The segment sizes with which methods, given without segments, are candidates: of each closed form
/// its best one, or none if it is surely no tie with the cheapest. `None` where these are not
/// to be compared: what is simulated, if it may be a tie.
///
/// # Errors
/// As [`best_segment`](super::best_segment).
pub(super) fn compared(
    predictor: &Predictor,
    point: Point,
    methods: &[Method],
) -> Result<Vec<Option<Vec<u64>>>, DecideError> {
    check(point)?;
    let (mut places, mut forms, mut simulated) = (Vec::new(), Vec::new(), Vec::new());
    for (place, method) in methods.iter().enumerate() {
        let evaluation = predictor.look_up_method(point, method)?;
        match evaluation.source {
            CostSource::Form(form) => {
                places.push(place);
                forms.push(Search::new(point, evaluation, form)?);
            }
            CostSource::Simulated(_) => simulated.push((place, evaluation)),
        }
    }
    let best = search(predictor, &mut forms)?;
    let mut sizes = vec![None; methods.len()];
    let is_apart =
        |best: &Spread| simulated.iter().all(|(_, evaluation)| evaluation.is_surely_no_tie(best));
    if best.is_some_and(|best| is_apart(&best)) {
        simulated.iter().for_each(|(place, _)| sizes[*place] = Some(Vec::new()));
    } else {
        // What is simulated may be the cheapest: who is a tie with that is another question.
        let known = forms.iter().map(Search::least).fold(f64::INFINITY, f64::min);
        forms.iter_mut().for_each(|form| form.search(predictor.tie_limit(known)));
    }
    let known = forms.iter().map(Search::least).fold(f64::INFINITY, f64::min);
    for (place, form) in places.into_iter().zip(&forms) {
        sizes[place] = Some(form.kept(predictor.tie_limit(known)).into_iter().collect());
    }
    Ok(sizes)
}

/// Searches every method that may be the cheapest or a tie with it. The cheapest, the first of
/// equal ones; `None` if there is no candidate.
fn search(
    predictor: &Predictor,
    searches: &mut [Search<'_>],
) -> Result<Option<Spread>, DecideError> {
    searches.iter_mut().for_each(Search::glance);
    let mut best: Option<(usize, Spread)> = None;
    loop {
        let known = searches.iter().map(Search::least).fold(f64::INFINITY, f64::min);
        let open = searches.iter_mut().filter(|search| search.stage == Stage::Open);
        let Some(next) = open.min_by(|a, b| a.least().total_cmp(&b.least())) else { break };
        match &best {
            Some((_, best)) if next.is_surely_apart(best) => continue,
            Some(_) => {}
            // It limits all others.
            None => next.look_around(),
        }
        next.search(predictor.tie_limit(known));
        let found = searches.iter().map(Search::found).fold(f64::INFINITY, f64::min);
        let is_first =
            |search: &Search<'_>| search.found().is_finite() && equal(search.found(), found);
        let Some(first) = searches.iter().position(is_first) else { continue };
        if best.is_none_or(|(of, _)| of != first) {
            best = Some((first, searches[first].spread()?));
            let apart = searches.iter_mut().filter(|search| search.stage == Stage::Apart);
            apart.for_each(|search| search.stage = Stage::Open);
        }
    }
    Ok(best.map(|(_, spread)| spread))
}
