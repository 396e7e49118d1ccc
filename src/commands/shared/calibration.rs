//! A calibration, for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use models::fit::{GAP_PER_BYTE_MEASURED, LATENCY_MEASURED, MIN_SECONDS, MIN_SECONDS_PER_BYTE};
use records::{
    Collective, Method,
    calibration::{
        AlgorithmFit, Algorithms, Calibration, Estimate, Parameters, PortGap, PortSharing,
    },
    quantity,
};

use super::output;

/// The parameters, for people.
pub fn summary(calibration: &Calibration) -> String {
    let inside = calibration.inside.as_ref();
    let sets = [
        Some(&calibration.measured),
        calibration.fitted.as_ref(),
        inside.map(|inside| &inside.measured),
        inside.and_then(|inside| inside.fitted.as_ref()),
    ];
    let rows = parameter_rows(&sets);
    let rows = rows.map(|(model, name, cells)| {
        [model.to_owned(), name.to_owned()].into_iter().chain(cells).collect()
    });
    let titles = match inside {
        Some(_) => ["between nodes", "fitted", "inside a node", "fitted"],
        None => ["measured", "fitted", "", ""],
    };
    let mut heading = vec!["model", "parameter"];
    for (title, _) in titles.into_iter().zip(sets).filter(|(_, set)| set.is_some()) {
        heading.extend([title, "95 % interval"]);
    }
    let mut text = calibration.platform.summary() + "\n\n";
    text += &output::aligned(&heading, rows);
    text += &inside.map(|inside| port(&inside.port)).unwrap_or_default();
    text += &calibration.measured.port_sharing.as_ref().map(sharing).unwrap_or_default();
    text += &algorithms(calibration);
    for warning in &calibration.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}

/// The two parameters that everybody knows, in one line; where the rest is.
pub fn brief(calibration: &Calibration, file: &Path) -> String {
    let hockney = &calibration.measured.hockney;
    let [alpha, _] = time_and_interval(hockney.alpha_seconds);
    let [beta, _] = time_per_byte_and_interval(hockney.beta_seconds_per_byte);
    let notes = match calibration.warnings.len() {
        0 => String::new(),
        some => format!(" ({})", records::counted(some, "note")),
    };
    format!(
        "calibrated: alpha {alpha}, beta {beta} (Hockney); all parameters in {}{notes}",
        file.display()
    )
}

/// A parameter's value and 95 % interval for people, in seconds.
pub fn time_and_interval(estimate: Estimate) -> [String; 2] {
    value_and_interval(estimate, MIN_SECONDS, quantity::format_seconds)
}

/// A parameter's value and 95 % interval for people, in seconds per byte.
pub fn time_per_byte_and_interval(estimate: Estimate) -> [String; 2] {
    value_and_interval(estimate, MIN_SECONDS_PER_BYTE, quantity::format_seconds_per_byte)
}

/// A parameter that a fit left at the least that it looks at was not determined by what was measured. Where nothing
/// tells how sure the value is there is no interval.
fn value_and_interval(
    Estimate { value, low, high }: Estimate,
    least: f64,
    unit: fn(f64) -> String,
) -> [String; 2] {
    if value <= least {
        return undetermined();
    }
    let interval = match low < high {
        true => format!("{} .. {}", unit(low), unit(high)),
        false => String::new(),
    };
    [unit(value), interval]
}

fn undetermined() -> [String; 2] {
    [output::UNDETERMINED.into(), String::new()]
}

/// (model, parameter, its value and interval in each set that there is).
fn parameter_rows(sets: &[Option<&Parameters>]) -> [(&'static str, &'static str, Vec<String>); 10] {
    // A parameter that another set's stands in for is printed as what says so in the file.
    let cells = |stand_in: &str, of: &dyn Fn(&Parameters) -> Option<[String; 2]>| -> Vec<String> {
        let cell = |set: &&Parameters| match of(set) {
            _ if set.derived.iter().any(|it| it == stand_in) => undetermined(),
            cells => cells.unwrap_or_default(),
        };
        sets.iter().flatten().flat_map(cell).collect()
    };
    let time_unless = |stand_in: &str, of: fn(&Parameters) -> Option<Estimate>| {
        cells(stand_in, &|set| of(set).map(time_and_interval))
    };
    let time = |of| time_unless("", of);
    let per_byte_unless = |stand_in: &str, of: fn(&Parameters) -> Estimate| {
        cells(stand_in, &|set| Some(time_per_byte_and_interval(of(set))))
    };
    let per_byte = |of| per_byte_unless("", of);
    [
        ("Hockney", "alpha", time(|set| Some(set.hockney.alpha_seconds))),
        (
            "",
            "beta",
            per_byte_unless(GAP_PER_BYTE_MEASURED, |set| set.hockney.beta_seconds_per_byte),
        ),
        ("LogGP", "L", time_unless(LATENCY_MEASURED, |set| Some(set.loggp.latency_seconds))),
        ("", "o", time(|set| Some(set.loggp.overhead_seconds))),
        ("", "g", time(|set| Some(set.loggp.gap_seconds))),
        ("", "G", per_byte_unless(GAP_PER_BYTE_MEASURED, |set| set.loggp.gap_seconds_per_byte)),
        ("PLogP", "L", time_unless(LATENCY_MEASURED, |set| Some(set.plogp.latency_seconds))),
        ("", "g(0)", time(|set| gap_at(set, 0))),
        ("", "g(64 KiB)", time(|set| gap_at(set, 64 << 10))),
        ("any", "gamma", per_byte(|set| set.gamma_seconds_per_byte)),
    ]
}

/// How messages that leave a rank at once share its port, for people.
fn sharing(sharing: &PortSharing) -> String {
    match sharing.frame_bytes {
        Some(Estimate { value, low, high }) => format!(
            "\nMessages that a rank sends at once take turns at its port, {value:.0} B at a time \
             (95 % interval {low:.0} .. {high:.0})\n"
        ),
        None => {
            "\nMessages that a rank sends at once were not seen to take turns at its port\n".into()
        }
    }
}

/// What ranks of a node get of its port, for people.
fn port(gaps: &[PortGap]) -> String {
    let of = |both_ways, bytes, ranks| {
        let gap = gaps.iter().find(|it| (it.ranks, it.both_ways) == (ranks, both_ways))?;
        gap.knots.iter().find(|knot| knot.bytes == bytes).map(|knot| knot.gap_seconds)
    };
    let places = gaps.iter().flat_map(|gap| gap.knots.iter().map(|knot| (knot.bytes, gap.ranks)));
    let places: BTreeSet<(u64, u32)> = places.collect();
    let cells = |both_ways, bytes: u64, ranks: u32| {
        let Some(Estimate { value, low, high }) = of(both_ways, bytes, ranks) else {
            return [const { String::new() }; 3];
        };
        let of_one = of(both_ways, bytes, 1).filter(|one| one.value > 0.0);
        let time = quantity::format_seconds;
        [
            time(value),
            format!("{} .. {}", time(low), time(high)),
            of_one.map_or_else(String::new, |one| format!("{:.2} x", value / one.value)),
        ]
    };
    let rows = places.iter().map(|&(bytes, ranks)| {
        let first = [quantity::format_bytes(bytes), ranks.to_string()].into_iter();
        first.chain(cells(false, bytes, ranks)).chain(cells(true, bytes, ranks)).collect()
    });
    let heading = [
        "size",
        "ranks",
        "one way",
        "95 % interval",
        "relative to 1 rank",
        "both ways",
        "95 % interval",
        "relative to 1 rank",
    ];
    match places.is_empty() {
        true => String::new(),
        false => format!(
            "\nTime of a message at a node's port, by how many of its ranks send at once\n\n{}",
            output::aligned(&heading, rows)
        ),
    }
}

fn gap_at(parameters: &Parameters, bytes: u64) -> Option<Estimate> {
    let knot = parameters.plogp.knots.iter().find(|knot| knot.bytes == bytes);
    knot.map(|knot| knot.gap_seconds)
}

/// The constants, for people: those of the refined forms, which know every algorithm.
fn algorithms(calibration: &Calibration) -> String {
    let Some(Algorithms { fits, records }) = &calibration.algorithms else { return String::new() };
    let mut shown: BTreeMap<(Collective, &Method), &AlgorithmFit> = BTreeMap::new();
    for fit in fits {
        let place = shown.entry((fit.collective, &fit.method)).or_insert(fit);
        if fit.model == models::Model::Refined.name() {
            *place = fit;
        }
    }
    let row = |fit: &&AlgorithmFit| {
        let [alpha, of_alpha] = time_and_interval(fit.alpha_seconds);
        let [beta, of_beta] = time_per_byte_and_interval(fit.beta_seconds_per_byte);
        vec![
            fit.collective.to_string(),
            fit.method.to_string(),
            alpha,
            of_alpha,
            beta,
            of_beta,
            format!("{:.4}", fit.r_squared),
            format!("{:.1} %", 100.0 * fit.median_residual),
        ]
    };
    let heading = [
        "collective",
        "algorithm",
        "alpha",
        "95 % interval",
        "beta",
        "95 % interval",
        "R^2",
        "median residual",
    ];
    let text = output::aligned(&heading, shown.values().map(row));
    format!("\nConstants of each algorithm, by its refined form ({})\n\n{text}", records.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_at_its_bound_is_not_determined_and_an_unknown_interval_is_left_out() {
        let of = |value, low, high| Estimate { value, low, high };
        assert_eq!(time_and_interval(of(0.0, 0.0, 1.1e-6)), ["not determined", ""]);
        assert_eq!(time_and_interval(of(MIN_SECONDS, 0.0, 1.1e-6)), ["not determined", ""]);
        assert_eq!(time_and_interval(Estimate::exact(5.2e-5)), ["52.0 us", ""]);
        let told = time_and_interval(of(5.2e-5, 0.0, 6e-5));
        assert_eq!(told, ["52.0 us", "0.00 ns .. 60.0 us"]);
        let told = time_per_byte_and_interval(of(2.345e-11, 2e-11, 3e-11));
        assert_eq!(told, ["0.0235 ns/byte", "0.0200 ns/byte .. 0.0300 ns/byte"]);
        assert_eq!(time_per_byte_and_interval(Estimate::exact(0.0)), ["not determined", ""]);
    }
}
