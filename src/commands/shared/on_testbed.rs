//! How what a run on a virtual cluster has tuned is loaded there.

use anyhow::Result;
use records::document;

use site::{
    begun::GivenOptions,
    run_directory::RunDirectory,
    template::{Template, quoted},
};
use stages::loading::APPLICATION;

/// The commands that start an application on the virtual cluster of a run with these variables, one after the other, each
/// behind what it is for: at first the one that sets such a cluster up, where the run's was taken down with it.
///
/// # Errors
/// The options that the run was begun with cannot be read.
pub fn commands(
    run: &RunDirectory,
    variables: &[(String, String)],
) -> Result<Vec<(&'static str, String)>> {
    let given = match run.options().exists() {
        true => document::read(&run.options())?,
        false => GivenOptions::default(),
    };
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    match given.value("testbed").map(|text| (text, text.parse::<u32>())) {
        Some((name, Err(_))) => words.extend(["--name".to_owned(), name.to_owned()]),
        Some((_, Ok(nodes))) => {
            let up = format!("colibri testbed up --nodes {nodes}");
            commands.push(("On a virtual cluster as the run's", up));
        }
        None => {}
    }
    if let Some(ranks) = given.value("ranks") {
        words.extend(["--ranks".to_owned(), ranks.to_owned()]);
    }
    let set = variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let set = set.collect::<Vec<_>>().join(" ");
    let begin = ["colibri", "testbed", "mpirun"].map(str::to_owned);
    let end = [APPLICATION.to_owned()];
    let start = Template::quoted_text(&[&begin[..], &words, &end].concat());
    let command = format!("{set} {start}").trim_start().to_owned();
    commands.push(("On the virtual cluster", command));
    Ok(commands)
}
