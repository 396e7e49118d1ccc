//! What of a calibration serde cannot check.

use super::{
    algorithms::AlgorithmFit,
    inside::InsideNode,
    memory::{CopyTimes, MemoryParameters, SharedAccess},
    parameters::{Estimate, Gamma, GapKnot, LogGpEstimates, ManyGap, Parameters, PortSharing},
};
use crate::number::MOST;

type FieldFault = (String, String);

/// A value is wrong: (field, problem).
pub(super) fn parameters(prefix: &str, parameters: &Parameters) -> Result<(), FieldFault> {
    let Parameters { hockney, loggp, plogp, gamma_seconds_per_byte, .. } = parameters;
    let scalars = [
        ("hockney.alpha_seconds", hockney.alpha_seconds),
        ("hockney.beta_seconds_per_byte", hockney.beta_seconds_per_byte),
        ("plogp.latency_seconds", plogp.latency_seconds),
        ("gamma_seconds_per_byte", *gamma_seconds_per_byte),
    ];
    for (field, estimate) in scalars {
        check_estimate(&format!("{prefix}.{field}"), estimate)?;
    }
    check_loggp(&format!("{prefix}.loggp"), loggp)?;
    if let Some(direct) = &parameters.loggp_direct {
        check_loggp(&format!("{prefix}.loggp_direct"), direct)?;
    }
    let knots = format!("{prefix}.plogp.knots");
    if plogp.knots.is_empty() {
        return Err((knots, "is empty; expected at least one message size".into()));
    }
    check_knots(
        &knots,
        &plogp.knots,
        |knot| knot.bytes,
        |knot| {
            vec![
                ("send_overhead_seconds", knot.send_overhead_seconds),
                ("receive_overhead_seconds", knot.receive_overhead_seconds),
                ("gap_seconds", knot.gap_seconds),
            ]
        },
    )?;
    check_knots(
        &format!("{prefix}.hockney_by_size"),
        &parameters.hockney_by_size,
        |knot| knot.bytes,
        |knot| {
            vec![
                ("alpha_seconds", knot.alpha_seconds),
                ("beta_seconds_per_byte", knot.beta_seconds_per_byte),
            ]
        },
    )?;
    for (field, gaps) in [
        ("gap_by_destinations", &plogp.gap_by_destinations),
        ("gap_by_sources", &plogp.gap_by_sources),
    ] {
        check_many_gaps(&format!("{prefix}.plogp.{field}"), gaps)?;
    }
    if let Some(sharing) = &parameters.port_sharing {
        check_port_sharing(&format!("{prefix}.port_sharing"), sharing)?;
    }
    if let Some(memory) = &parameters.memory {
        check_memory(&format!("{prefix}.memory"), memory)?;
    }
    check_combining(&format!("{prefix}.gamma"), &parameters.gamma)
}

/// Every table has a row, and what takes time takes some.
fn check_memory(prefix: &str, memory: &MemoryParameters) -> Result<(), FieldFault> {
    let MemoryParameters {
        messages,
        slowdown,
        copies,
        combining_start_seconds,
        ranks_per_cache,
        shared,
    } = memory;
    if let Some(ranks @ ..2) = *ranks_per_cache {
        let problem = format!("is {ranks}; expected 2 or more, or no such field");
        return Err((format!("{prefix}.ranks_per_cache"), problem));
    }
    if let Some(start) = *combining_start_seconds {
        check_estimate(&format!("{prefix}.combining_start_seconds"), start)?;
    }
    let empty = [
        ("messages", messages.is_empty()),
        ("slowdown", slowdown.is_empty()),
        ("copies", copies.is_empty()),
    ];
    if let Some((field, _)) = empty.into_iter().find(|(_, is_empty)| *is_empty) {
        return Err((format!("{prefix}.{field}"), "is empty; expected at least one entry".into()));
    }
    let field = format!("{prefix}.messages");
    check_knots(
        &field,
        messages,
        |knot| knot.bytes,
        |knot| {
            vec![
                ("trip_seconds", knot.trip_seconds),
                ("send_seconds", knot.send_seconds),
                ("receive_seconds", knot.receive_seconds),
            ]
        },
    )?;
    for (index, knot) in messages.iter().enumerate() {
        let (send, receive) = (knot.send_seconds.value, knot.receive_seconds.value);
        let trip = knot.trip_seconds.value;
        if trip <= 0.0 || send > trip || receive > trip {
            let problem = format!(
                "is {trip}; expected more than 0, and no less than the send ({send}) and the receive ({receive}) take"
            );
            return Err((format!("{field}[{index}].trip_seconds.value"), problem));
        }
    }
    let mut before = 1;
    for (index, row) in slowdown.iter().enumerate() {
        check_ascending(&format!("{prefix}.slowdown[{index}].busy_ranks"), row.busy_ranks, before)?;
        before = row.busy_ranks;
        let field = format!("{prefix}.slowdown[{index}].knots");
        check_row(&field, &row.knots, |knot| knot.bytes, |knot| ("factor", knot.factor))?;
    }
    check_copies(&format!("{prefix}.copies"), copies)?;
    shared.as_ref().map_or(Ok(()), |shared| check_shared(&format!("{prefix}.shared"), shared))
}

/// Reads are there, and what takes time takes some.
fn check_shared(prefix: &str, shared: &SharedAccess) -> Result<(), FieldFault> {
    let SharedAccess { flag_seconds, further_flag_seconds, reads } = shared;
    check_estimate(&format!("{prefix}.flag_seconds"), *flag_seconds)?;
    check_estimate(&format!("{prefix}.further_flag_seconds"), *further_flag_seconds)?;
    if flag_seconds.value <= 0.0 {
        return Err((format!("{prefix}.flag_seconds.value"), "is 0; expected more".into()));
    }
    match reads.is_empty() {
        true => Err((format!("{prefix}.reads"), "is empty; expected at least one entry".into())),
        false => check_copies(&format!("{prefix}.reads"), reads),
    }
}

/// Numbers of busy ranks ascend, and each row has sizes.
fn check_copies(prefix: &str, rows: &[CopyTimes]) -> Result<(), FieldFault> {
    let mut before = 0;
    for (index, CopyTimes { busy_ranks, knots }) in rows.iter().enumerate() {
        check_ascending(&format!("{prefix}[{index}].busy_ranks"), *busy_ranks, before)?;
        before = *busy_ranks;
        let field = format!("{prefix}[{index}].knots");
        check_row(&field, knots, |knot| knot.bytes, |knot| ("seconds", knot.seconds))?;
    }
    Ok(())
}

fn check_ascending(field: &str, number: u32, before: u32) -> Result<(), FieldFault> {
    match number > before {
        true => Ok(()),
        false => {
            Err((field.into(), format!("is {number}; expected more than {before}, ascending")))
        }
    }
}

/// There are knots, and no value is 0.
fn check_row<T>(
    field: &str,
    knots: &[T],
    bytes: impl Fn(&T) -> u64,
    estimate: impl Fn(&T) -> (&'static str, Estimate),
) -> Result<(), FieldFault> {
    if knots.is_empty() {
        return Err((field.into(), "is empty; expected at least one message size".into()));
    }
    check_knots(field, knots, bytes, |knot| vec![estimate(knot)])?;
    match knots.iter().map(&estimate).position(|(_, estimate)| estimate.value <= 0.0) {
        Some(index) => {
            let (name, _) = estimate(&knots[index]);
            Err((format!("{field}[{index}].{name}.value"), "is 0; expected more".into()))
        }
        None => Ok(()),
    }
}

/// A frame has a byte at least, whatever its interval.
fn check_port_sharing(prefix: &str, sharing: &PortSharing) -> Result<(), FieldFault> {
    if let Some(frame) = sharing.frame_bytes {
        let field = format!("{prefix}.frame_bytes");
        check_estimate(&field, frame)?;
        if frame.value < 1.0 {
            let problem = format!("value {}; expected 1 or more, or no such field", frame.value);
            return Err((field, problem));
        }
    }
    check_knots(
        &format!("{prefix}.knots"),
        &sharing.knots,
        |knot| knot.bytes,
        |knot| vec![("alone_seconds", knot.alone_seconds), ("beside_seconds", knot.beside_seconds)],
    )
}

fn check_combining(prefix: &str, all: &[Gamma]) -> Result<(), FieldFault> {
    for (index, gamma) in all.iter().enumerate() {
        let field = format!("{prefix}[{index}]");
        if all[..index].iter().any(|other| other.operation == gamma.operation) {
            let problem = format!("{} occurs twice", gamma.operation.name());
            return Err((format!("{field}.operation"), problem));
        }
        check_knots(
            &format!("{field}.knots"),
            &gamma.knots,
            |knot| knot.bytes,
            |knot| vec![("seconds_per_byte", knot.seconds_per_byte)],
        )?;
    }
    Ok(())
}

/// What holds inside a node.
pub(super) fn inside(inside: &InsideNode) -> Result<(), FieldFault> {
    parameters("inside.measured", &inside.measured)?;
    if let Some(fitted) = &inside.fitted {
        parameters("inside.fitted", fitted)?;
    }
    for (index, gap) in inside.port.iter().enumerate() {
        let field = |name: &str| format!("inside.port[{index}].{name}");
        let before = index.checked_sub(1).map(|before| &inside.port[before]);
        let place = (gap.ranks, gap.both_ways);
        if gap.ranks == 0 || before.is_some_and(|it| (it.ranks, it.both_ways) >= place) {
            let problem = format!("is {}; expected 1 or more, ascending", gap.ranks);
            return Err((field("ranks"), problem));
        }
        check_gaps(&field("knots"), &gap.knots)?;
    }
    Ok(())
}

/// Constants of algorithms: every method at most once for a model, without segments.
pub(super) fn algorithms(fits: &[AlgorithmFit]) -> Result<(), FieldFault> {
    for (index, fit) in fits.iter().enumerate() {
        let field = |name: &str| format!("algorithms.fits[{index}].{name}");
        let AlgorithmFit { collective, method, model, .. } = fit;
        if method.algorithm().is_none() || method.segment_bytes() > 0 {
            let problem = format!("is {method}; expected an algorithm without segments");
            return Err((field("method"), problem));
        }
        let same = |other: &AlgorithmFit| {
            (other.collective, &other.method, &other.model) == (*collective, method, model)
        };
        if fits[..index].iter().any(same) {
            let problem = format!("{collective} by {method} has constants of {model} twice");
            return Err((field("method"), problem));
        }
        check_estimate(&field("alpha_seconds"), fit.alpha_seconds)?;
        check_estimate(&field("beta_seconds_per_byte"), fit.beta_seconds_per_byte)?;
    }
    Ok(())
}

fn check_loggp(prefix: &str, loggp: &LogGpEstimates) -> Result<(), FieldFault> {
    [
        ("latency_seconds", loggp.latency_seconds),
        ("overhead_seconds", loggp.overhead_seconds),
        ("gap_seconds", loggp.gap_seconds),
        ("gap_seconds_per_byte", loggp.gap_seconds_per_byte),
    ]
    .into_iter()
    .try_for_each(|(field, estimate)| check_estimate(&format!("{prefix}.{field}"), estimate))
}

fn check_many_gaps(field: &str, gaps: &[ManyGap]) -> Result<(), FieldFault> {
    for (index, gap) in gaps.iter().enumerate() {
        let above = if index == 0 { 1 } else { gaps[index - 1].partners };
        if gap.partners <= above {
            let problem = format!("is {}; expected more than {above}, ascending", gap.partners);
            return Err((format!("{field}[{index}].partners"), problem));
        }
        check_gaps(&format!("{field}[{index}].knots"), &gap.knots)?;
    }
    Ok(())
}

fn check_gaps(field: &str, knots: &[GapKnot]) -> Result<(), FieldFault> {
    if knots.is_empty() {
        return Err((field.into(), "is empty; expected at least one message size".into()));
    }
    check_knots(field, knots, |knot| knot.bytes, |knot| vec![("gap_seconds", knot.gap_seconds)])
}

/// Sizes ascend and every interval holds its value.
fn check_knots<T>(
    field: &str,
    knots: &[T],
    bytes: impl Fn(&T) -> u64,
    estimates: impl Fn(&T) -> Vec<(&'static str, Estimate)>,
) -> Result<(), FieldFault> {
    for (index, knot) in knots.iter().enumerate() {
        if index > 0 && bytes(knot) <= bytes(&knots[index - 1]) {
            let problem = "does not ascend; expected larger than the one before";
            return Err((format!("{field}[{index}].bytes"), problem.into()));
        }
        for (name, estimate) in estimates(knot) {
            check_estimate(&format!("{field}[{index}].{name}"), estimate)?;
        }
    }
    Ok(())
}

fn check_estimate(field: &str, estimate: Estimate) -> Result<(), FieldFault> {
    let Estimate { value, low, high } = estimate;
    if !(0.0 <= low && low <= value && value <= high && high <= MOST) {
        let problem = format!(
            "value {value}, low {low}, high {high}; expected 0 <= low <= value <= high <= {MOST:e}"
        );
        return Err((field.into(), problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::*;

    fn parameters() -> Parameters {
        let one = Estimate::exact(1.0);
        let knot = PLogPKnot {
            bytes: 0,
            send_overhead_seconds: one,
            receive_overhead_seconds: one,
            gap_seconds: one,
        };
        Parameters::new(
            HockneyEstimates { alpha_seconds: one, beta_seconds_per_byte: one },
            LogGpEstimates {
                latency_seconds: one,
                overhead_seconds: one,
                gap_seconds: one,
                gap_seconds_per_byte: one,
            },
            PLogPEstimates::new(one, vec![knot]),
        )
    }

    #[test]
    fn what_was_not_measured_is_absent_and_may_be() {
        let text = serde_json::to_string(&parameters()).unwrap();
        for absent in ["gap_by", "\"gamma\"", "direct", "by_size", "protocol", "sharing", "memory"]
        {
            assert!(!text.contains(absent), "{text}");
        }
        assert_eq!(serde_json::from_str::<Parameters>(&text).unwrap(), parameters());
    }

    #[test]
    fn a_wrong_memory_is_refused_by_the_field_s_name() {
        let one = Estimate::exact(1.0);
        let message = MemoryMessageKnot {
            bytes: 8,
            trip_seconds: one,
            send_seconds: one,
            receive_seconds: one,
        };
        let slowdown = |busy_ranks| Slowdown {
            busy_ranks,
            knots: vec![SlowdownKnot { bytes: 8, factor: one }],
        };
        let copies =
            |busy_ranks| CopyTimes { busy_ranks, knots: vec![CopyKnot { bytes: 8, seconds: one }] };
        let right = MemoryParameters {
            messages: vec![message],
            slowdown: vec![slowdown(4), slowdown(8)],
            copies: vec![copies(1), copies(2)],
            combining_start_seconds: None,
            ranks_per_cache: Some(4),
            shared: Some(SharedAccess {
                flag_seconds: one,
                further_flag_seconds: one,
                reads: vec![copies(1)],
            }),
        };
        let check = |memory: &MemoryParameters| {
            let parameters = Parameters { memory: Some(memory.clone()), ..parameters() };
            super::parameters("measured", &parameters).map_err(|(field, _)| field)
        };
        assert_eq!(check(&right), Ok(()));
        let refused = |change: &dyn Fn(&mut MemoryParameters)| {
            let mut memory = right.clone();
            change(&mut memory);
            check(&memory).unwrap_err()
        };
        for (wanted, found) in [
            ("messages", refused(&|it| it.messages.clear())),
            ("slowdown", refused(&|it| it.slowdown.clear())),
            ("copies[0].knots", refused(&|it| it.copies[0].knots.clear())),
            ("copies[0].busy_ranks", refused(&|it| it.copies[0].busy_ranks = 0)),
            ("slowdown[1].busy_ranks", refused(&|it| it.slowdown[1].busy_ranks = 4)),
            ("slowdown[0].busy_ranks", refused(&|it| it.slowdown[0].busy_ranks = 1)),
            (
                "slowdown[0].knots[0].factor.value",
                refused(&|it| it.slowdown[0].knots[0].factor = Estimate::exact(0.0)),
            ),
            (
                "messages[0].trip_seconds.value",
                refused(&|it| it.messages[0].send_seconds = Estimate::exact(2.0)),
            ),
            ("shared.reads", refused(&|it| it.shared.as_mut().unwrap().reads.clear())),
            (
                "shared.flag_seconds.value",
                refused(&|it| it.shared.as_mut().unwrap().flag_seconds = Estimate::exact(0.0)),
            ),
            (
                "shared.reads[0].busy_ranks",
                refused(&|it| it.shared.as_mut().unwrap().reads[0].busy_ranks = 0),
            ),
            ("ranks_per_cache", refused(&|it| it.ranks_per_cache = Some(1))),
            (
                "combining_start_seconds",
                refused(&|it| it.combining_start_seconds = Some(Estimate::exact(-1.0))),
            ),
        ] {
            assert_eq!(found, format!("measured.memory.{wanted}"));
        }
    }

    #[test]
    fn a_wrong_list_is_refused_by_the_field_s_name() {
        let field = |change: &dyn Fn(&mut Parameters)| {
            let mut parameters = parameters();
            change(&mut parameters);
            super::parameters("measured", &parameters).unwrap_err().0
        };
        let gap = |partners, bytes: &[u64]| {
            let knot = |&bytes| GapKnot { bytes, gap_seconds: Estimate::exact(1.0) };
            ManyGap { partners, knots: bytes.iter().map(knot).collect() }
        };
        let to = "measured.plogp.gap_by_destinations";
        for (gaps, wanted) in [
            (vec![gap(1, &[1])], "[0].partners"),
            (vec![gap(3, &[1]), gap(3, &[1])], "[1].partners"),
            (vec![gap(u32::MAX, &[1]), gap(2, &[1])], "[1].partners"),
            (vec![gap(2, &[])], "[0].knots"),
            (vec![gap(2, &[8, 8])], "[0].knots[1].bytes"),
        ] {
            let found = field(&|one| one.plogp.gap_by_destinations = gaps.clone());
            assert_eq!(found, format!("{to}{wanted}"));
        }
        let port = |gaps: &[(u32, bool, &[u64])]| {
            let of = |&(ranks, both_ways, bytes): &(u32, bool, &[u64])| PortGap {
                ranks,
                both_ways,
                knots: gap(0, bytes).knots,
            };
            let port = gaps.iter().map(of).collect();
            let inside =
                InsideNode { measured: parameters(), fitted: None, fits: Vec::new(), port };
            super::inside(&inside).map_err(|(field, _)| field)
        };
        assert_eq!(port(&[(1, false, &[1]), (1, true, &[1]), (2, false, &[1, 8])]), Ok(()));
        assert_eq!(port(&[(0, false, &[1])]), Err("inside.port[0].ranks".into()));
        assert_eq!(port(&[(2, true, &[1]), (2, false, &[1])]), Err("inside.port[1].ranks".into()));
        assert_eq!(port(&[(2, true, &[])]), Err("inside.port[0].knots".into()));

        let sharing = |frame: f64, sizes: &[u64]| {
            let one = Estimate::exact(1.0);
            let knot = |&bytes| PortSharingKnot { bytes, alone_seconds: one, beside_seconds: one };
            let frame_bytes = Some(Estimate::exact(frame));
            Some(PortSharing { frame_bytes, knots: sizes.iter().map(knot).collect() })
        };
        for (wrong, wanted) in [
            (sharing(0.5, &[1]), "frame_bytes"),
            (sharing(-1.0, &[1]), "frame_bytes"),
            (sharing(1500.0, &[8, 8]), "knots[1].bytes"),
        ] {
            let found = field(&|one| one.port_sharing = wrong.clone());
            assert_eq!(found, format!("measured.port_sharing.{wanted}"));
        }
        let gamma = Gamma { operation: Operation::MaxInt, knots: Vec::new() };
        let found = field(&|one| one.gamma = vec![gamma.clone(), gamma.clone()]);
        assert_eq!(found, "measured.gamma[1].operation");
    }

    #[test]
    fn constants_are_of_algorithms_and_there_once() {
        let fit = |method: &str| AlgorithmFit {
            collective: crate::Collective::Bcast,
            method: method.parse().unwrap(),
            model: "hockney".into(),
            alpha_seconds: Estimate::exact(1e-5),
            beta_seconds_per_byte: Estimate::exact(1e-9),
            r_squared: 1.0,
            median_residual: 0.0,
            points: Vec::new(),
        };
        let check = |fits: &[AlgorithmFit]| super::algorithms(fits);
        let (own, native) = (fit("own:binomial"), fit("native:openmpi:binomial"));
        assert_eq!(check(&[own.clone(), native]), Ok(()));
        assert_eq!(check(&[own.clone(), own.clone()]).unwrap_err().0, "algorithms.fits[1].method");
        for method in ["default", "own:binomial,segment=1KiB"] {
            assert_eq!(check(&[fit(method)]).unwrap_err().0, "algorithms.fits[0].method");
        }
        let negative = Estimate { value: -1.0, low: -1.0, high: 0.0 };
        let wrong = AlgorithmFit { beta_seconds_per_byte: negative, ..own };
        assert_eq!(check(&[wrong]).unwrap_err().0, "algorithms.fits[0].beta_seconds_per_byte");
    }
}
