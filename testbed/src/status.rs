//! What stands.

use std::{collections::BTreeSet, fs, path::Path};

use switch::Service;

use crate::{
    Phase, RanksPerNode, Rate, Spec, TestbedError, processes,
    spec::{self, namespace},
    state, switch_process,
    system::{self, NAMESPACES},
};

/// In what condition a testbed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Complete, and usable.
    Standing,
    /// Being made, or something of it is missing: to be removed by [`down`](crate::down).
    Partial,
}

/// A testbed, or what is left of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestbedStatus {
    pub name: String,
    /// Whether it is whole.
    pub condition: Condition,
    /// How many of its nodes' namespaces are there.
    pub nodes: u32,
    /// Of its ports, as it was asked for; unknown where its state file is lost.
    pub rate: Option<Rate>,
    /// How many ranks a node holds; unknown where its state file is lost.
    pub ranks_per_node: Option<RanksPerNode>,
    /// The processes in it.
    pub processes: Vec<i32>,
    /// What it was made from; unknown where its state file is lost.
    pub spec: Option<Spec>,
    /// What its switch tells of itself, if it has one.
    pub service: Option<Service>,
}

/// Every testbed on this machine, and what is left of any, by name: those with a state directory and
/// those with namespaces.
///
/// # Errors
/// Not root; a directory that cannot be listed.
pub fn status() -> Result<Vec<TestbedStatus>, TestbedError> {
    system::require_root()?;
    let live = live_namespaces()?;
    let mut names: BTreeSet<String> = state::names()?.into_iter().collect();
    names.extend(live.iter().filter_map(|ns| spec::of_namespace(ns)).map(|(name, _)| name.into()));
    Ok(names.into_iter().map(|name| status_of(name, &live)).collect())
}

fn status_of(name: String, live: &[String]) -> TestbedStatus {
    let places = places_in(&name, live);
    let nodes = places.iter().filter(|place| spec::is_node(place)).count() as u32;
    // A state file that cannot be read is one sign of what the condition says.
    let state = state::read(&name).ok();
    let service = switch_process::service(&name);
    let whole = state.as_ref().is_some_and(|state| {
        state.phase == Phase::Standing
            && state.spec.links.is_some() == service.is_some()
            && state.spec.places().all(|place| live.contains(&namespace(&name, &place)))
    });
    TestbedStatus {
        condition: if whole { Condition::Standing } else { Condition::Partial },
        nodes,
        rate: state.as_ref().map(|state| state.spec.rate),
        ranks_per_node: state.as_ref().map(|state| state.spec.ranks_per_node.clone()),
        processes: processes::of_testbed(&name, &places),
        service,
        spec: state.map(|state| state.spec),
        name,
    }
}

fn places_in(name: &str, live: &[String]) -> Vec<String> {
    let ours = live.iter().filter_map(|namespace| spec::of_namespace(namespace));
    ours.filter(|(testbed, _)| *testbed == name).map(|(_, place)| place.into()).collect()
}

/// The places of a testbed whose namespaces have their names.
pub(crate) fn places_of(name: &str) -> Result<Vec<String>, TestbedError> {
    Ok(places_in(name, &live_namespaces()?))
}

/// The names of its namespaces.
pub(crate) fn namespaces_of(name: &str) -> Result<Vec<String>, TestbedError> {
    Ok(places_of(name)?.iter().map(|place| namespace(name, place)).collect())
}

/// The names of all namespaces that have one.
fn live_namespaces() -> Result<Vec<String>, TestbedError> {
    let folder = Path::new(NAMESPACES);
    match fs::read_dir(folder) {
        Ok(entries) => {
            Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(records::FileError::io(folder, "list the directory", &error).into()),
    }
}
