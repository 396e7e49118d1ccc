//! Other tools' names of algorithms.

use libraries::MpiLibrary;
use records::{Algorithm, Collective, Library, Method, Native};

/// What others call an algorithm, where it is not our name with other signs.
const NAMES: &[(&str, Algorithm)] = &[
    ("basic-linear", Algorithm::Linear),
    ("binary-tree", Algorithm::Binary),
    ("brucks", Algorithm::Bruck),
    ("chain", Algorithm::KChain),
    ("in-order", Algorithm::InOrderBinary),
    ("knomial", Algorithm::KNomial),
    ("linear-nb", Algorithm::LinearConcurrent),
    ("linear-sync", Algorithm::LinearSynchronised),
    ("linear-synch", Algorithm::LinearSynchronised),
    ("modified-bruck", Algorithm::Bruck),
    ("neighbor", Algorithm::NeighborExchange),
    ("split-binary", Algorithm::SplittedBinary),
    ("split-binary-tree", Algorithm::SplittedBinary),
];

/// The algorithm that others call so.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let known = NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    known.or_else(|| name.parse().ok())
}

/// A library's own algorithm by another's name; none where the library that we know has no such
/// algorithm for the collective. Of a library that we do not know every algorithm counts that has
/// one of the field's names.
pub fn native(library: Library, collective: Collective, name: &str) -> Option<Method> {
    let algorithm = algorithm(name)?;
    let known: Option<&dyn MpiLibrary> = libraries::find(library).ok();
    let has = |it: &dyn MpiLibrary| it.algorithms(collective).contains(&algorithm);
    let native = Native { library, algorithm, segment_bytes: 0 };
    known.is_none_or(has).then_some(Method::Native(native))
}

/// MPI's name of a collective: `MPI_Bcast`, `Reduce_scatter`, `ALLGATHER`.
///
/// # Errors
/// There is no such collective.
pub fn collective(name: &str) -> Result<Collective, String> {
    let plain = name.strip_prefix("MPI_").unwrap_or(name);
    plain.to_ascii_lowercase().parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_call_an_algorithm_is_understood() {
        let openmpi = Library::new("openmpi").unwrap();
        let native =
            |collective, name| native(openmpi, collective, name).map(|method| method.to_string());
        assert_eq!(
            native(Collective::Bcast, "knomial").as_deref(),
            Some("native:openmpi:k-nomial")
        );
        assert_eq!(
            native(Collective::Allgather, "neighbor").as_deref(),
            Some("native:openmpi:neighbor-exchange")
        );
        assert_eq!(native(Collective::Scatter, "knomial"), None, "it has none for scatter");
        assert_eq!(native(Collective::Bcast, "bine_lat"), None);
        assert_eq!(collective("MPI_Reduce_scatter"), Ok(Collective::ReduceScatter));
        assert!(collective("MPI_Bcst").unwrap_err().contains("bcast"));
    }
}
