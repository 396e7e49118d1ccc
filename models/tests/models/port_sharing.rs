//! The port of a node against what pairs of ranks did on a real cluster.

use models::{
    Model,
    parameters::{Combining, LogGp, Network, PointToPointParameters},
    port_sharing::{self, PairsRate, PortKnot},
    presets::preset,
    simulated::{LevelledNetwork, SimulatedCall},
};
use records::{
    Algorithm, Collective, Layout, OwnMethod, RankPlacement,
    calibration::{Estimate, GapKnot, PortGap},
};
use schedules::simulator::Costs as _;

const MEASURED: &str = include_str!("data/alaska-multi-pair.csv");

fn measured(network: &str) -> Vec<PortKnot> {
    let rows = MEASURED.lines().filter_map(|line| line.strip_prefix(network)?.strip_prefix(','));
    let rate = |row: &str| {
        let fields: Vec<&str> = row.split(',').collect();
        PairsRate {
            pairs: fields[0].parse().unwrap(),
            bytes: fields[1].parse().unwrap(),
            messages_per_second: fields[2].parse().unwrap(),
        }
    };
    port_sharing::fit(&rows.map(rate).collect::<Vec<_>>()).unwrap()
}

/// (bytes, pairs, deviation) of all that is further off than 15 %.
fn outside(knots: &[PortKnot]) -> Vec<(u64, u32, f64)> {
    let all = knots.iter().flat_map(|knot| {
        knot.deviations.iter().map(|(pairs, deviation)| (knot.bytes, *pairs, *deviation))
    });
    all.filter(|(_, _, deviation)| deviation.abs() > 0.15).collect()
}

#[test]
fn one_to_32_pairs_of_a_real_cluster_share_a_port_as_the_model_has_it() {
    let roce = measured("roce");
    assert_eq!(roce.len(), 23);
    // 256 bytes, where two pairs nearly fill the port: the corner is round there.
    assert!(
        matches!(outside(&roce)[..], [(256, 1 | 2, deviation)] if deviation.abs() < 0.25),
        "{:?}",
        outside(&roce)
    );
    // 25 Gbit/s.
    let last = &roce[22];
    let gigabits = 8.0 * last.bytes as f64 / last.port_gap / 1e9;
    assert!((24.0..25.0).contains(&gigabits), "{gigabits}");
    let infiniband = measured("infiniband");
    let long: Vec<_> = infiniband.iter().filter(|knot| knot.bytes >= 1024).cloned().collect();
    assert!(
        matches!(outside(&long)[..], [(2048, 1 | 2, deviation)] if deviation.abs() < 0.2),
        "{:?}",
        outside(&long)
    );
    // What the model lacks: below 1 KiB the rate of 32 pairs falls below that of 16.
    let short: Vec<_> =
        outside(&infiniband).into_iter().filter(|(bytes, ..)| *bytes < 1024).collect();
    assert!(
        short.iter().filter(|(_, pairs, _)| *pairs >= 16).count() * 4 >= short.len() * 3,
        "{short:?}"
    );
}

#[test]
fn known_gaps_are_found_whatever_the_order() {
    let rate = |pairs: u32, seconds: f64| PairsRate {
        pairs,
        bytes: 8,
        messages_per_second: f64::from(pairs) / seconds,
    };
    for (pair_gap, port_gap) in [(5e-6, 1e-6), (5e-6, 5e-6), (3e-6, 0.1e-6)] {
        let seconds = |pairs: u32| f64::max(pair_gap, f64::from(pairs) * port_gap);
        let mut rates: Vec<PairsRate> = [32, 1, 4, 16, 2, 8].map(|k| rate(k, seconds(k))).to_vec();
        // One job of three was disturbed.
        rates.extend([rate(4, seconds(4)), rate(4, 3.0 * seconds(4))]);
        let knots = port_sharing::fit(&rates).unwrap();
        assert_eq!(knots.len(), 1);
        for pairs in [1, 3, 64] {
            assert!(
                (knots[0].seconds(pairs) / seconds(pairs) - 1.0).abs() < 1e-9 || port_gap < 0.2e-6
            );
        }
        assert!((knots[0].pair_gap / pair_gap - 1.0).abs() < 1e-9, "{knots:?}");
        assert!(knots[0].deviations.iter().all(|(_, deviation)| deviation.abs() < 1e-9));
    }
    for (rates, part) in [
        (vec![rate(1, 1.0)], "one number of pairs only"),
        (vec![PairsRate { messages_per_second: 0.0, ..rate(1, 1.0) }], "expected more than 0"),
    ] {
        let error = port_sharing::fit(&rates).unwrap_err().problem;
        assert!(error.contains(part), "{error}");
    }
    assert!(port_sharing::network(&[]).is_err());
}

/// In a minute a slow network may reach one size alone.
#[test]
fn a_port_measured_with_short_messages_alone_is_shared_by_long_ones_too() {
    let between = Network::new(Model::PLogP, &preset("frodo").unwrap().measured).unwrap();
    // One rank fills half of the port.
    let half = |ranks: u32| 0.5 * f64::from(ranks).max(2.0) * between.gap(8, 1);
    let gap = |ranks: u32| PortGap {
        ranks,
        both_ways: false,
        knots: vec![GapKnot { bytes: 8, gap_seconds: Estimate::exact(half(ranks)) }],
    };
    let port = port_sharing::of_gaps(&[1, 2, 4].map(gap), &between).unwrap().unwrap();
    for bytes in [0, 8, 1000, 1 << 20, 1 << 28] {
        let share = port.gap(bytes, 1) / between.gap(bytes, 1);
        assert!((share - 0.5).abs() < 1e-6, "{bytes}: {share}");
    }
}

/// Two nodes of k ranks: alltoall among them is limited by the port where that is full.
#[test]
fn the_simulator_shares_the_fitted_port() {
    let loggp = |gap_per_byte| Network {
        model: PointToPointParameters::LogGp(LogGp {
            latency: 1e-6,
            overhead: 0.0,
            gap: 0.0,
            gap_per_byte,
        }),
        combining: Combining::per_byte(0.0),
        memory: None,
    };
    let knot =
        |bytes, port_gap| PortKnot { bytes, pair_gap: 0.0, port_gap, deviations: Vec::new() };
    // A pair fills half of its port.
    let port =
        port_sharing::network(&[knot(0, 0.0), knot(1 << 20, 0.5e-9 * (1 << 20) as f64)]).unwrap();
    let levels = LevelledNetwork { inside: loggp(1e-12), between: loggp(1e-9), port: Some(port) };
    let bytes = 1 << 20;
    let entry = schedules::find(Collective::Alltoall, Algorithm::Pairwise).unwrap();
    for (per_node, times) in [(1_u32, 1.0), (2, 2.0 * 2.0 * 0.5), (4, 4.0 * 4.0 * 0.5)] {
        let layout = Layout::even(2, per_node, RankPlacement::Block).unwrap();
        let procs = 2 * per_node;
        let run = SimulatedCall {
            entry,
            procs,
            root: 0,
            bytes,
            method: OwnMethod::plain(entry.algorithm),
            layout: Some(layout),
            rendezvous: None,
        };
        let outcome = run.simulate_levels(&levels, |_| {}).unwrap();
        let wanted = times * bytes as f64 * 1e-9;
        let ratio = outcome.seconds / wanted;
        // Steps with the other node and steps inside take turns, and a message flies at the pace of
        // its pair when the port has taken it.
        assert!((0.99..2.01).contains(&ratio), "{per_node}: {ratio}");
    }
}
