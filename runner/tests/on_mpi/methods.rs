//! What is tried: our algorithms, and the collectives that have any.

use colibri_runner::OwnMethod;
use records::Collective;

/// By the registry's word, for what the executor must refuse.
pub fn can(method: &OwnMethod, commutative: bool, ranks: u32) -> bool {
    let text = method.to_string();
    let name = text.trim_start_matches("own:").split('(').next().unwrap();
    let entry = schedules::find_named(method.collective(), name).unwrap();
    (commutative || !entry.requirements.commutative)
        && (!entry.requirements.even || ranks == 1 || ranks.is_multiple_of(2))
}

/// All algorithms; those with segments also with several.
pub fn methods(collective: Collective) -> Vec<OwnMethod> {
    let segments = |segmented: bool| if segmented { &[0, 40][..] } else { &[0] };
    schedules::of_collective(collective)
        .flat_map(|entry| segments(entry.segmented).iter().map(move |segment| (entry, *segment)))
        .map(|(entry, segment)| OwnMethod::from_entry(entry, segment).unwrap())
        .collect()
}

/// The collectives that have algorithms of ours.
pub fn collectives() -> impl Iterator<Item = Collective> {
    let has_own = |collective: &Collective| schedules::of_collective(*collective).next().is_some();
    Collective::ALL.into_iter().filter(has_own)
}
