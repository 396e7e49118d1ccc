//! How a library's own methods are predicted, whose ranks may stand at other places than in ours.

use records::{Algorithm, Collective, Method, Native};
use schedules::Entry;

use super::{PredictError, Predictor, cost_source::CostSource};

impl Predictor {
    /// What the time of a library's method is found from.
    pub(super) fn source_of_native(
        &self,
        collective: Collective,
        native: &Native,
        procs: u32,
    ) -> Result<CostSource, PredictError> {
        let follows = self.follows_schedules();
        match (libraries::unlike_its_name(collective, native), follows) {
            (None, true) if self.differs(collective, native, procs) => {
                native_schedule(collective, native)
                    .map(CostSource::Simulated)
                    .ok_or_else(|| self.unknown(collective, native.algorithm))
            }
            (None, _) => self.source_of_algorithm(collective, native.algorithm, procs),
            (Some((like, _)), true) => self.source_of_algorithm(collective, like, procs),
            (Some((_, reason)), false) => {
                Err(PredictError::Method { collective, method: Method::Native(*native), reason })
            }
        }
    }

    /// Whether the places of a library's ranks make a difference: on nodes of several ranks, where
    /// the simulator tells, where some share a cache, and where its tree has another shape than ours. Binomial trees on a
    /// power of two ranks have one shape.
    fn differs(&self, collective: Collective, native: &Native, procs: u32) -> bool {
        let alike = native.algorithm == Algorithm::Binomial && procs.is_power_of_two();
        libraries::variant(collective, native).is_some()
            && (self.sees_nodes() || self.sees_caches(procs) || !alike)
    }
}

/// The schedule of a library's method, with its ranks where the library has them.
pub fn native_schedule(collective: Collective, native: &Native) -> Option<&'static Entry> {
    match libraries::variant(collective, native) {
        Some(name) => schedules::find_variant(collective, name),
        None => {
            let unlike = libraries::unlike_its_name(collective, native);
            schedules::find(collective, unlike.map_or(native.algorithm, |(like, _)| like))
        }
    }
}
