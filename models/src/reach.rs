use records::{
    Point,
    calibration::{AlgorithmFit, Calibration, Parameters},
    quantity,
};

use crate::presets;

/// How far the measurements behind some parameters reach. What is predicted beyond is an
/// extrapolation: there no measurement stands beside the model.
///
/// Every prediction for more than two ranks rests on the model; within the platform it can be
/// verified, beyond it can't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// Processes of the platform; unknown where the calibration names none.
    pub procs: Option<u32>,
    /// The largest message measured point to point, in bytes; unknown where the size-dependent
    /// parameters were not measured but derived.
    pub bytes: Option<u64>,
}

impl Reach {
    /// Of parameters of a calibration, measured or fitted.
    pub fn from_calibration(calibration: &Calibration, parameters: &Parameters) -> Self {
        let procs = match calibration.platform.hosts.len() {
            0 => presets::cluster(&calibration.source),
            ranks => u32::try_from(ranks).ok(),
        };
        let derived = parameters.derived.iter().any(|note| note.starts_with("plogp from"));
        let largest = parameters.plogp.knots.last().map(|knot| knot.bytes);
        Reach { procs, bytes: largest.filter(|_| !derived) }
    }

    /// Of constants of algorithms: to the largest point that any of them was fitted to.
    pub fn of_algorithms(fits: &[AlgorithmFit]) -> Self {
        let points = || fits.iter().flat_map(|fit| &fit.points);
        Reach {
            procs: points().map(|point| point.procs).max(),
            bytes: points().map(|point| point.bytes).max(),
        }
    }

    /// Whether a point lies within; what is not known sets no limit. Of the message it is its
    /// whole size that counts ([`Collective::message_size`](records::Collective::message_size)):
    /// however it is cut, candidates send it whole.
    pub fn covers(&self, point: Point) -> bool {
        self.excess(point).is_none()
    }

    /// By what a point lies beyond, in words: `64 ranks, calibrated with 32`.
    pub fn excess(&self, point: Point) -> Option<String> {
        let procs = self
            .procs
            .filter(|procs| point.procs() > *procs)
            .map(|procs| format!("{} ranks, calibrated with {procs}", point.procs()));
        let bytes = self.bytes.filter(|bytes| point.bytes > *bytes).map(|bytes| {
            let [size, bytes] = [point.bytes, bytes].map(quantity::format_bytes);
            format!("{size}, calibrated up to {bytes}")
        });
        let all: Vec<String> = procs.into_iter().chain(bytes).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::Collective;

    fn point(procs: u32, bytes: u64) -> Point {
        Point::flat(Collective::Bcast, procs, bytes)
    }

    #[test]
    fn a_preset_reaches_as_far_as_its_cluster() {
        let frodo = presets::preset("frodo").unwrap();
        let reach = Reach::from_calibration(&frodo, &frodo.measured);
        // The paper does not say up to which size it measured.
        assert_eq!(reach, Reach { procs: Some(32), bytes: None });
        assert!(reach.covers(point(32, u64::MAX)));
        let excess = reach.excess(point(33, 1)).unwrap();
        assert_eq!(excess, "33 ranks, calibrated with 32");
    }

    #[test]
    fn a_measured_platform_reaches_to_its_ranks_and_its_largest_message() {
        let mut calibration = presets::preset("boba").unwrap();
        calibration.source = "observations.csv".into();
        calibration.measured.derived.clear();
        assert_eq!(Reach::from_calibration(&calibration, &calibration.measured).procs, None);
        calibration.platform.hosts = vec!["a".into(), "b".into(), "c".into()];
        let reach = Reach::from_calibration(&calibration, &calibration.measured);
        assert_eq!(reach, Reach { procs: Some(3), bytes: Some(1 << 20) });
        assert!(reach.covers(point(3, 1 << 20)));
        let excess = reach.excess(point(4, 2 << 20)).unwrap();
        assert_eq!(excess, "4 ranks, calibrated with 3; 2 MiB, calibrated up to 1 MiB");
    }
}
