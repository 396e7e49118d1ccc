//! How coll/tuned is made to run one of its algorithms.

use records::{Collective, Native};

use super::algorithms::{OpenMpiAlgorithm, algorithms, find, methods};
use crate::library::{ReadAt, RequiredVariable, Variable, WithinJob};

/// The setting without which forced algorithms and rules files are silently ignored, as an
/// environment variable.
pub const SWITCH_VARIABLE: &str = "OMPI_MCA_coll_tuned_use_dynamic_rules";

/// Read when a communicator is made: seen on 4.1.4 and 5.0.11.
pub const WITHIN_JOB: WithinJob = WithinJob {
    methods: |_, collective, segments, procs, bytes| methods(collective, segments, procs, bytes),
    switch: Some(RequiredVariable {
        name: "coll_tuned_use_dynamic_rules",
        turned_on_by: "start with 'mpirun --mca coll_tuned_use_dynamic_rules 1'",
    }),
    part: "Open MPI with the component coll/tuned",
    variables: |_, collective, native| variables(collective, native),
    read: ReadAt::Communicator,
};

fn variables(collective: Collective, native: &Native) -> Result<Vec<Variable>, String> {
    let OpenMpiAlgorithm { id, .. } = find(collective, native.algorithm).ok_or_else(|| {
        let known = algorithms(collective).iter().map(|row| row.algorithm.name());
        format!(
            "Open MPI has no algorithm {} for {collective} that can be forced (it has: {})",
            native.algorithm,
            known.collect::<Vec<_>>().join(", ")
        )
    })?;
    let bytes = native.segment_bytes;
    let segment = i32::try_from(bytes)
        .map_err(|_| format!("segments of {bytes} bytes; Open MPI takes up to {}", i32::MAX))?;
    let name = format!("coll_tuned_{collective}_algorithm");
    // Collectives of which no algorithm has segments lack the setting.
    let segment = Variable { name: format!("{name}_segmentsize"), value: segment, optional: true };
    Ok(vec![Variable { name, value: *id as i32, optional: false }, segment])
}

/// The same for a whole job.
pub fn environment(collective: Collective, native: &Native) -> Option<Vec<(String, String)>> {
    let variables = variables(collective, native).ok()?;
    let set =
        |variable: Variable| (format!("OMPI_MCA_{}", variable.name), variable.value.to_string());
    let on = (SWITCH_VARIABLE.to_owned(), "1".to_owned());
    Some([on].into_iter().chain(variables.into_iter().map(set)).collect())
}

#[cfg(test)]
mod tests {
    use records::Algorithm;

    use super::{super::algorithms::LIBRARY, *};

    #[test]
    fn a_segment_size_goes_with_the_number() {
        let native =
            Native { library: LIBRARY, algorithm: Algorithm::Pipeline, segment_bytes: 8192 };
        let told = environment(Collective::Bcast, &native).unwrap();
        let told: Vec<String> =
            told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            told,
            [
                "OMPI_MCA_coll_tuned_use_dynamic_rules=1",
                "OMPI_MCA_coll_tuned_bcast_algorithm=3",
                "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize=8192",
            ]
        );
        let huge = Native { segment_bytes: 4 << 30, ..native };
        assert_eq!(environment(Collective::Bcast, &huge), None);
    }
}
