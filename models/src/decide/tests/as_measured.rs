//! Made-up parameters that look like those of a calibration; benchmarks use them as well.

use rand::{RngExt as _, SeedableRng as _};
use records::calibration::{Estimate, GapKnot, ManyGap, Parameters};

/// As they are measured: os and or, which are small beside g, scatter, fall here and there and are uncertain
/// down to 0; L and g are known well; more partners slow down or speed up a little.
pub fn as_measured(mut parameters: Parameters, seed: u64) -> Parameters {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let latency = 10f64.powf(random.random_range(-5.5..-2.8));
    let per_byte = 10f64.powf(random.random_range(-9.5..-6.0));
    let start = latency * random.random_range(0.02..0.5);
    let overhead = start * random.random_range(0.05..0.6);
    let plogp = &mut parameters.plogp;
    plogp.latency_seconds = Estimate { value: latency, low: 0.975 * latency, high: 1.02 * latency };
    let mut knot = plogp.knots[0].clone();
    let mut noisy = |bytes: u64| {
        let mut about = |value: f64, noise: f64, doubt: f64| {
            let value = value * random.random_range(1.0 - noise..1.0 + noise);
            Estimate { value, low: (value * (1.0 - doubt)).max(0.0), high: value * (1.0 + doubt) }
        };
        knot.bytes = bytes;
        let copied = overhead + 0.01 * per_byte * bytes as f64;
        knot.send_overhead_seconds = about(copied, 0.3, 1.1);
        knot.receive_overhead_seconds = about(copied, 0.3, 0.6);
        knot.gap_seconds = about(start + per_byte * bytes as f64, 0.02, 0.005);
        knot.clone()
    };
    let sizes = std::iter::once(0).chain((0..=16).map(|shift| 1 << shift));
    plogp.knots = sizes.map(&mut noisy).collect();
    plogp.gap_by_destinations = [2, 4, 7]
        .map(|partners| {
            let knots = [1_u64, 1 << 10, 8 << 10].map(|bytes| {
                let gap = (start + per_byte * bytes as f64) * f64::from(partners);
                let gap_seconds = Estimate::exact(gap * random.random_range(0.95..1.1));
                GapKnot { bytes, gap_seconds }
            });
            ManyGap { partners, knots: knots.into() }
        })
        .into();
    parameters.gamma_seconds_per_byte = Estimate { value: 2e-11, low: 1.9e-11, high: 2.3e-11 };
    parameters
}
