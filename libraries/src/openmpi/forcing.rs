//! How coll/tuned, coll/han or coll/sm is made to run one of its algorithms.

use records::{Collective, Method, Native, Point};

use super::{
    algorithms::{LIBRARY, OpenMpiAlgorithm, algorithms, find, methods},
    han, han_file, sm, tuned,
};
use crate::library::{Forced, ForcedPart, ReadAt, RequiredVariable, Variable, WithinJob};

/// The setting without which forced algorithms and rules files are silently ignored, as an
/// environment variable.
pub const SWITCH_VARIABLE: &str = "OMPI_MCA_coll_tuned_use_dynamic_rules";

/// What stands before a parameter's name in the environment.
const IN_ENVIRONMENT: &str = "OMPI_MCA_";

/// A parameter as an environment variable.
pub fn as_variable(parameter: &str) -> String {
    format!("{IN_ENVIRONMENT}{parameter}")
}

/// Read when a communicator is made: seen on 4.1.4 and 5.0.11.
pub const WITHIN_JOB: WithinJob = WithinJob {
    methods: all_methods,
    switch: Some(RequiredVariable {
        name: "coll_tuned_use_dynamic_rules",
        turned_on_by: "start with 'mpirun --mca coll_tuned_use_dynamic_rules 1'",
    }),
    part: "Open MPI with the component coll/tuned",
    variables: within_job,
    read: ReadAt::Communicator,
};

/// Variables that nobody changes within a job: MPI's tool interface calls them read-only (`ompi_info` of
/// 4.1.4 and 5.0.11), unlike those of the other collectives.
fn is_read_only(collective: Collective) -> bool {
    collective == Collective::Allgatherv
}

fn within_job(
    version: (u32, u32),
    collective: Collective,
    native: &Native,
) -> Result<Vec<Variable>, String> {
    if sm::is(collective, native) {
        return Err(format!("Open MPI's setting {} can't be changed within a job", sm::PRIORITY));
    }
    let variables = variables(version, collective, native)?;
    match is_read_only(collective) {
        true => Err(format!(
            "Open MPI's setting coll_tuned_{collective}_algorithm can't be changed within a job"
        )),
        false => Ok(variables),
    }
}

fn all_methods(version: (u32, u32), point: Point, segments: &[u64]) -> Vec<Method> {
    let Point { collective, layout, bytes } = point;
    let mut all = methods(collective, segments, layout.procs(), bytes);
    all.extend(han::methods(version, point));
    all
}

fn variables(
    version: (u32, u32),
    collective: Collective,
    native: &Native,
) -> Result<Vec<Variable>, String> {
    let in_han = han::find(collective, native.algorithm);
    if let Some(algorithm) = in_han.filter(|_| version >= han::COMES_FIRST) {
        return match native.segment_bytes {
            0 => Ok(han::forced(collective, algorithm)),
            _ => Err(format!("{} takes no segment size", native.algorithm)),
        };
    }
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
    let number = Variable { name, value: *id as i32, optional: false };
    Ok([number, segment].into_iter().chain(han::set_aside(version)).collect())
}

/// The environment variables by which a whole job runs an algorithm of a collective; nothing where the version cannot.
pub fn environment(
    version: (u32, u32),
    collective: Collective,
    native: &Native,
) -> Option<Vec<(String, String)>> {
    if sm::is(collective, native) {
        return (native.segment_bytes == 0).then(sm::environment);
    }
    let variables = variables(version, collective, native).ok()?;
    let set = |variable: Variable| (as_variable(&variable.name), variable.value.to_string());
    let on = (SWITCH_VARIABLE.to_owned(), "1".to_owned());
    Some([on].into_iter().chain(variables.into_iter().map(set)).collect())
}

/// See [`forces`](crate::MpiLibrary::forces).
pub fn forces(name: &str, value: &str) -> Option<Forced> {
    let name = name.strip_prefix(IN_ENVIRONMENT).unwrap_or(name);
    if [tuned::RULES_FILE, han_file::RULES_FILE].contains(&name) {
        return Some(Forced::Several);
    }
    let (collective, part) = name.strip_prefix("coll_tuned_")?.split_once("_algorithm")?;
    let part = match part {
        "" => ForcedPart::Algorithm,
        "_segmentsize" => ForcedPart::SegmentSize,
        _ if part.ends_with("_fanout") => ForcedPart::FanOut,
        _ => return None,
    };
    let collective = collective.parse().ok()?;
    (!["", "0", "ignore"].contains(&value)).then_some(Forced::Of(collective, part))
}

/// The algorithm of a number, the same in all versions.
///
/// # Errors
/// There is none, or the segment size is no number.
pub fn forced_method(
    collective: Collective,
    algorithm: &str,
    segment_bytes: Option<&str>,
) -> Result<Native, String> {
    let id: Option<u32> = algorithm.parse().ok();
    let Some(row) = algorithms(collective).iter().find(|row| Some(row.id) == id) else {
        return Err("no algorithm of Open MPI has this number".into());
    };
    let segment_bytes = match segment_bytes {
        Some(size) if row.segmented => {
            size.parse().map_err(|_| "the segment size is no number".to_owned())?
        }
        _ => 0,
    };
    Ok(Native { library: LIBRARY, algorithm: row.algorithm, segment_bytes })
}

#[cfg(test)]
mod tests {
    use records::Algorithm;

    use super::*;

    #[test]
    fn a_segment_size_goes_with_the_number() {
        let native =
            Native { library: LIBRARY, algorithm: Algorithm::Pipeline, segment_bytes: 8192 };
        let told = environment((4, 1), Collective::Bcast, &native).unwrap();
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
        assert_eq!(environment((4, 1), Collective::Bcast, &huge), None);
    }

    #[test]
    fn what_is_read_only_is_forced_for_a_whole_job() {
        let native = Native { library: LIBRARY, algorithm: Algorithm::Ring, segment_bytes: 0 };
        let (number, collective) = ((4, 1), Collective::Allgatherv);
        let told = (WITHIN_JOB.variables)(number, collective, &native).unwrap_err();
        assert!(told.contains("coll_tuned_allgatherv_algorithm can't be changed"), "{told}");
        let set = ("OMPI_MCA_coll_tuned_allgatherv_algorithm".to_owned(), "3".to_owned());
        assert!(environment(number, collective, &native).unwrap().contains(&set));
    }

    /// Else coll/han would run in its place.
    #[test]
    fn coll_han_is_set_aside_or_asked() {
        let forced = |version, algorithm| -> Result<Vec<String>, String> {
            let native = Native { library: LIBRARY, algorithm, segment_bytes: 0 };
            let told = variables(version, Collective::Bcast, &native)?;
            Ok(told.iter().map(|one| format!("{}={}", one.name, one.value)).collect())
        };
        let of_tuned = forced((5, 0), Algorithm::Linear).unwrap();
        assert_eq!(of_tuned.last().unwrap(), "coll_han_priority=0");
        let wanted = ["coll_han_priority=100", "coll_han_use_bcast_algorithm=2"];
        assert_eq!(forced((5, 0), Algorithm::HanSimple).unwrap(), wanted);
        let before = forced((4, 1), Algorithm::HanSimple);
        assert!(before.unwrap_err().contains("no algorithm han-simple"));
    }
}
