//! How what a run on a virtual cluster has tuned is loaded there.

use anyhow::Result;
use clap::{Args as _, Command};
use records::document;

use site::{
    begun::GivenOptions,
    options::TestbedOptions,
    run_directory::RunDirectory,
    template::{Template, quoted},
};

/// The commands that start an application on the virtual cluster of a run with these variables; before them the one
/// that sets such a cluster up, where the run's was taken down with it.
///
/// # Errors
/// The options that the run was begun with cannot be read.
pub fn commands(run: &RunDirectory, variables: &[(String, String)]) -> Result<String> {
    let given = match run.options().exists() {
        true => document::read(&run.options())?,
        false => GivenOptions::default(),
    };
    let (mut text, mut words) = (String::new(), Vec::new());
    match given.value("testbed").map(|text| (text, text.parse::<u32>())) {
        Some((name, Err(_))) => words.extend(["--name".to_owned(), name.to_owned()]),
        Some((_, Ok(nodes))) => {
            let network = network(&given);
            let up = [
                &["colibri", "testbed", "up", "--nodes"].map(str::to_owned)[..],
                &[nodes.to_string()],
            ];
            let up = Template::quoted_text(&[&up.concat()[..], &network].concat());
            text += &format!("On a virtual cluster as the run's:  {up}\n");
        }
        None => {}
    }
    if let Some(ranks) = given.value("ranks") {
        words.extend(["--ranks".to_owned(), ranks.to_owned()]);
    }
    let set = variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let set = set.collect::<Vec<_>>().join(" ");
    let begin = ["colibri", "testbed", "mpirun"].map(str::to_owned);
    let end = ["./application".to_owned()];
    let start = Template::quoted_text(&[&begin[..], &words, &end].concat());
    Ok(text + &format!("On the virtual cluster:  {set} {start}\n"))
}

/// The options of its network, as they were given.
fn network(given: &GivenOptions) -> Vec<String> {
    let options = TestbedOptions::augment_args(Command::new(""));
    let names: Vec<&str> = options.get_arguments().filter_map(|one| one.get_long()).collect();
    let is_of_network = |word: &String| {
        let name = word.trim_start_matches("--").split('=').next().unwrap_or_default();
        names.contains(&name)
    };
    given.words().filter(is_of_network).collect()
}
