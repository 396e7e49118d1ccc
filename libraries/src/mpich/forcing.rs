//! How MPICH is made to run one of its algorithms: by its control variables, set in the environment
//! of a job or, within one, by MPI's tool interface.

use records::{Collective, Method, Native, Point};

use super::algorithms::{self, LIBRARY, MpichAlgorithm, Version};
use super::tuning_file::FILE_VARIABLE;
use crate::library::{Forced, ForcedPart, ReadAt, Variable, WithinJob};

/// Read at each call, on communicators old and new: seen on 4.0.2 and 5.0.2.
pub const WITHIN_JOB: WithinJob = WithinJob {
    methods,
    switch: None,
    part: "MPICH 4.0 to 5.0",
    variables,
    read: ReadAt::Call(runs),
};

/// Value of `MPIR_CVAR_COLLECTIVE_FALLBACK` by which a call fails that the algorithm can't carry out.
/// (Set at the start of a job it would end 5.0.2 in `MPI_Init`.)
const FALL_BACK_IS_AN_ERROR: i32 = 0;

/// What the names of control variables begin with.
const CONTROL: &str = "MPIR_CVAR_";

fn variable(collective: Collective, name: &str) -> String {
    format!("{CONTROL}{}_{name}", collective.name().to_uppercase())
}

/// A parameter of a tuning file as a control variable; none for what has no variable.
fn parameter(collective: Collective, row: &MpichAlgorithm, text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let name = match name {
        "tree_type" => "TREE_TYPE",
        "k" if row.name.contains("tree") => "TREE_KVAL",
        "is_non_blocking" => "IS_NON_BLOCKING",
        "recv_pre_posted" => "RECV_PRE_POST",
        _ => return None,
    };
    Some((variable(collective, name), value.to_owned()))
}

fn parameters(
    collective: Collective,
    row: &MpichAlgorithm,
    segment_bytes: u64,
) -> Vec<(String, String)> {
    let named = |text: &&str| parameter(collective, row, text);
    let mut set: Vec<(String, String)> = row.parameters.iter().filter_map(&named).collect();
    if let Some(segment) = row.segment {
        let bytes = segment_bytes.to_string();
        set.push((variable(collective, "TREE_PIPELINE_CHUNK_SIZE"), bytes));
        set.extend(segment.followed_by.iter().filter_map(named));
    }
    set
}

/// For a whole job.
pub fn environment(
    version: Version,
    collective: Collective,
    native: &Native,
) -> Option<Vec<(String, String)>> {
    let row = algorithms::find(version, collective, native)?;
    let first = [
        (variable(collective, "DEVICE_COLLECTIVE"), "0".to_owned()),
        (variable(collective, "INTRA_ALGORITHM"), row.name.to_owned()),
    ];
    Some(first.into_iter().chain(parameters(collective, row, native.segment_bytes)).collect())
}

/// See [`forces`](crate::MpiLibrary::forces). Before 3.3 the variables of algorithms lacked `INTRA`.
pub fn forces(name: &str, value: &str) -> Option<Forced> {
    if name == FILE_VARIABLE {
        return Some(Forced::Several);
    }
    let of = name.strip_prefix(CONTROL)?.strip_suffix("_ALGORITHM")?;
    let of = of.strip_suffix("_INTRA").unwrap_or(of).to_ascii_lowercase().parse().ok()?;
    (!["", "auto"].contains(&value)).then_some(Forced::Of(of, ForcedPart::Algorithm))
}

/// The place of an algorithm in the list of `src/mpi/coll/cvars.txt`, which the tool interface takes in
/// the place of its name. Read from 4.0.2, 4.1.3, 4.2.3, 4.3.2 and 5.0.2 started with the name.
fn number(version: Version, collective: Collective, name: &str) -> Option<i32> {
    use Collective as C;
    let since = |major, minor| i32::from(version >= Version { major, minor });
    Some(match (collective, name) {
        (C::Bcast | C::Reduce | C::Gather | C::Scatter, "binomial") => 1,
        (C::Bcast, "scatter_recursive_doubling_allgather") => 4,
        (C::Bcast, "scatter_ring_allgather") => 5,
        (C::Bcast, "pipelined_tree") => 6,
        (C::Bcast, "tree") => 7,
        (C::Reduce, "reduce_scatter_gather") => 4,
        (C::Allreduce | C::Scan, "recursive_doubling") => 3,
        (C::Allreduce, "reduce_scatter_allgather") => 4 + since(4, 3),
        (C::Allreduce, "ring") => 7 + since(4, 3),
        (C::Allgather | C::Alltoall, "brucks") => 1,
        (C::Allgather, "recursive_doubling") => 3 + since(4, 1),
        (C::Allgather, "ring") => 4 + since(4, 1),
        (C::Alltoall, "pairwise") => 3 + since(4, 1),
        (C::Alltoall, "scattered") => 5 + since(4, 1),
        (C::Barrier, "dissemination" | "k_dissemination") => 3,
        (C::ReduceScatter | C::ReduceScatterBlock, "pairwise") => 3,
        (C::ReduceScatter, "recursive_doubling") => 4,
        (C::ReduceScatter, "recursive_halving") => 5,
        (C::ReduceScatterBlock, "recursive_doubling") => 2,
        (C::ReduceScatterBlock, "recursive_halving") => 4,
        (C::Exscan, "recursive_doubling") => 2,
        _ => return None,
    })
}

/// The kind of tree that holds where none is set; another one is read when a job starts, not later.
const USUAL_TREE: &str = "kary";

fn variables(
    version: (u32, u32),
    collective: Collective,
    native: &Native,
) -> Result<Vec<Variable>, String> {
    let (major, minor) = version;
    let version = Version { major, minor };
    let method = Method::Native(*native);
    let Some(row) = algorithms::find(version, collective, native) else {
        let known = algorithms::algorithms(collective).iter().map(|row| row.algorithm.name());
        let mut known: Vec<&str> = known.collect();
        known.dedup();
        let known = known.join(", ");
        return Err(format!(
            "MPICH {major}.{minor} can't be made to run {method} of {collective} (versions have: {known})"
        ));
    };
    let Some(number) = number(version, collective, row.name) else {
        return Err(format!("the number of MPICH's {} of {collective} is not known", row.name));
    };
    let set = |name: String, value: i32| Variable { name, value, optional: false };
    let mut variables = vec![
        set(variable(collective, "DEVICE_COLLECTIVE"), 0),
        set(variable(collective, "INTRA_ALGORITHM"), number),
        set("MPIR_CVAR_COLLECTIVE_FALLBACK".into(), FALL_BACK_IS_AN_ERROR),
    ];
    for (name, value) in parameters(collective, row, native.segment_bytes) {
        if name.ends_with("TREE_TYPE") {
            if value == USUAL_TREE {
                continue;
            }
            return Err(format!(
                "{method}: MPICH reads its kind of tree when a job starts, not within one"
            ));
        }
        let number = value.parse().map_err(|_| {
            format!("{method}: {value} is no value that MPICH's {name} takes (up to {})", i32::MAX)
        })?;
        variables.push(set(name, number));
    }
    Ok(variables)
}

/// All that a version can be made to run within a job, for messages of so many bytes; no segments
/// that hold the whole message.
fn methods(version: (u32, u32), point: Point, segments: &[u64]) -> Vec<Method> {
    let Point { collective, bytes, .. } = point;
    let mut methods = Vec::new();
    let mut of_rows: Vec<(&MpichAlgorithm, u64)> = Vec::new();
    for row in algorithms::algorithms(collective) {
        match row.segment {
            None => of_rows.push((row, 0)),
            Some(_) => {
                let shorter = segments.iter().filter(|&&segment| segment > 0 && segment < bytes);
                of_rows.extend(shorter.map(|&segment| (row, segment)));
            }
        }
    }
    for (row, segment_bytes) in of_rows {
        let native = Native { library: LIBRARY, algorithm: row.algorithm, segment_bytes };
        let method = Method::Native(native);
        let can_be_forced = variables(version, collective, &native).is_ok();
        if algorithms::runs(row, point) && can_be_forced && !methods.contains(&method) {
            methods.push(method);
        }
    }
    methods
}

/// As its functions are called: `MPIR_Bcast_intra_binomial`.
fn runs(version: (u32, u32), collective: Collective, native: &Native) -> Option<String> {
    let version = Version { major: version.0, minor: version.1 };
    Some(algorithms::function(collective, algorithms::find(version, collective, native)?))
}

#[cfg(test)]
mod tests {
    use records::Algorithm;

    use super::*;

    fn native(text: &str) -> Native {
        match text.parse().unwrap() {
            Method::Native(native) => native,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_tree_is_forced_with_its_kind_and_segments() {
        let pipeline = native("native:mpich:pipeline,segment=8KiB");
        let version = Version { major: 5, minor: 0 };
        let told = environment(version, Collective::Bcast, &pipeline).unwrap();
        let told: Vec<String> =
            told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            told,
            [
                "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=0",
                "MPIR_CVAR_BCAST_INTRA_ALGORITHM=pipelined_tree",
                "MPIR_CVAR_BCAST_TREE_TYPE=kary",
                "MPIR_CVAR_BCAST_TREE_KVAL=1",
                "MPIR_CVAR_BCAST_IS_NON_BLOCKING=0",
                "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE=8192",
                "MPIR_CVAR_BCAST_RECV_PRE_POST=0",
            ]
        );
        let old = Version { major: 4, minor: 0 };
        assert_eq!(environment(old, Collective::Bcast, &pipeline), None);
    }

    #[test]
    fn within_a_job_numbers_are_those_of_the_version() {
        let pairwise = native("native:mpich:pairwise");
        let number = |version| {
            let set = variables(version, Collective::Alltoall, &pairwise).unwrap();
            set.iter().find(|one| one.name.ends_with("INTRA_ALGORITHM")).unwrap().value
        };
        assert_eq!([(4, 0), (4, 1), (5, 0)].map(number), [3, 4, 4]);
        let error = variables((4, 0), Collective::Bcast, &native("native:mpich:k-nomial"));
        assert!(error.unwrap_err().contains("MPICH 4.0 can't be made to run"));
        let error = variables((5, 0), Collective::Bcast, &native("native:mpich:k-nomial"));
        assert!(error.unwrap_err().contains("when a job starts"));
    }

    /// Nothing is left out for want of a number.
    #[test]
    fn every_algorithm_of_a_version_has_a_number() {
        for version in [(4, 0), (4, 1), (4, 2), (4, 3), (5, 0)] {
            for collective in Collective::ALL {
                for row in algorithms::algorithms(collective) {
                    let segment_bytes = if row.segment.is_some() { 64 } else { 0 };
                    let algorithm = row.algorithm;
                    let native = Native { library: LIBRARY, algorithm, segment_bytes };
                    let at = Version { major: version.0, minor: version.1 };
                    if let Some(found) = algorithms::find(at, collective, &native) {
                        assert!(
                            number(at, collective, found.name).is_some(),
                            "{collective} {native:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_would_fail_is_not_among_the_methods() {
        let texts = |collective, procs, bytes| -> Vec<String> {
            let methods = methods((5, 0), Point::flat(collective, procs, bytes), &[0, 1024]);
            methods.iter().map(Method::to_string).collect()
        };
        let odd = texts(Collective::Allgather, 3, 64);
        assert_eq!(odd, ["native:mpich:bruck", "native:mpich:ring"]);
        assert_eq!(texts(Collective::Allgather, 4, 64).len(), 3);
        // An element of eight bytes, and four ranks.
        assert_eq!(texts(Collective::Reduce, 4, 8), ["native:mpich:binomial"]);
        assert_eq!(texts(Collective::Reduce, 4, 32).len(), 2);
        let bcast = texts(Collective::Bcast, 4, 4096);
        assert!(bcast.contains(&"native:mpich:pipeline,segment=1KiB".into()), "{bcast:?}");
        assert!(!bcast.iter().any(|one| one.contains(Algorithm::KNomial.name())), "{bcast:?}");
    }
}
