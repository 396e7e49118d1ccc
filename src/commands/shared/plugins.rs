//! Collectives from outside, in C shared libraries: the flags that name them, and what they took.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
};

use anyhow::Result;
use clap::Args;
use records::{Collective, Method, Plugin, Point, quantity};

use super::output;
use site::{error::WrongUse, usage};

/// Over the flags of plug-ins in a help text.
const PLUGINS: &str = "Plug-ins";

/// Collectives from outside.
#[derive(Debug, Clone, Args)]
pub struct PluginOptions {
    /// C shared library that implements a collective to measure; one for all --operation, or one
    /// for each
    #[arg(long = "plugin", short = 'l', value_name = "FILE", requires = "operations", hide_short_help = true, help_heading = PLUGINS)]
    libraries: Vec<OsString>,

    /// Function of that library, with the signature of the MPI collective that its name contains
    /// (my_bcast_2); repeatable
    #[arg(long = "operation", short = 'O', value_name = "SYMBOL", requires = "libraries", hide_short_help = true, help_heading = PLUGINS)]
    operations: Vec<String>,

    /// Argument of the library's collectives_initialize; one for all --operation, or one for each
    #[arg(long = "suboptions", value_name = "TEXT", requires = "operations", hide_short_help = true, help_heading = PLUGINS)]
    suboptions: Vec<String>,
}

impl PluginOptions {
    /// The plug-ins, each with the collective that it implements.
    ///
    /// # Errors
    /// A library is not there, a name tells no collective or one that is not in `measured`, or the
    /// flags don't go together.
    pub fn methods(&self, measured: &[Collective]) -> Result<Vec<(Collective, Method)>> {
        let count = self.operations.len();
        let libraries = for_each(&self.libraries, count, "--plugin")?;
        let none = String::new();
        let suboptions = match self.suboptions.is_empty() {
            true => vec![&none; count],
            false => for_each(&self.suboptions, count, "--suboptions")?,
        };
        let mut methods = Vec::new();
        for ((symbol, library), suboptions) in self.operations.iter().zip(libraries).zip(suboptions)
        {
            let plugin = Plugin::new(&located(library)?, symbol, suboptions)
                .map_err(|problem| WrongUse(format!("--operation {symbol}: {problem}")))?;
            let collective = plugin
                .collective()
                .map_err(|problem| WrongUse(format!("--operation {symbol}: {problem}")))?;
            if !measured.contains(&collective) {
                usage!(
                    "--operation {symbol} implements {collective}, which is not measured; add it \
                     to --collective"
                );
            }
            methods.push((collective, Method::Plugin(Box::new(plugin))));
        }
        Ok(methods)
    }
}

/// One value for all, or one for each.
fn for_each<'a, T>(values: &'a [T], count: usize, flag: &str) -> Result<Vec<&'a T>> {
    match values {
        [one] => Ok(vec![one; count]),
        _ if values.len() == count => Ok(values.iter().collect()),
        _ => usage!(
            "{flag} is given {}, --operation {}; give one for all of them, or one for each",
            records::counted(values.len(), "time"),
            records::counted(count, "time")
        ),
    }
}

/// Ranks may start elsewhere: a file gets its whole path. Another name is the loader's affair.
fn located(library: &OsStr) -> Result<String> {
    let path = Path::new(library);
    let is_file = path.is_file();
    if !is_file && path.components().count() > 1 {
        usage!("--plugin {}: there is no such file", path.display());
    }
    let whole = if is_file { path.canonicalize()? } else { path.to_owned() };
    match whole.into_os_string().into_string() {
        Ok(whole) => Ok(whole),
        // It is a part of the method's name, which stands in records and plans.
        Err(_) => usage!(
            "--plugin {}: its path is not UTF-8; use a link with another name",
            path.display()
        ),
    }
}

/// What plug-ins took, beside the default and the best of the others; empty without plug-ins.
///
/// `times` holds the methods of each point with the number of their observations (or jobs) and
/// their median in seconds.
pub fn table(times: &BTreeMap<Point, Vec<(&Method, usize, f64)>>) -> String {
    let mut rows = Vec::new();
    for (point, methods) in times {
        let default = methods.iter().find(|(method, ..)| **method == Method::Default);
        let others = methods.iter().filter(|(method, ..)| !matches!(method, Method::Plugin(_)));
        let best = others.min_by(|a, b| a.2.total_cmp(&b.2));
        for (method, count, seconds) in methods {
            let Method::Plugin(plugin) = method else { continue };
            let compared = |other: Option<&(&Method, usize, f64)>| {
                other.map_or_else(
                    || "-".to_owned(),
                    |(_, _, other)| {
                        format!("{} ({:.2})", quantity::format_seconds(*other), other / seconds)
                    },
                )
            };
            rows.push(vec![
                point.collective.to_string(),
                plugin_name(plugin),
                point.layout.to_string(),
                quantity::format_bytes(point.bytes),
                count.to_string(),
                quantity::format_seconds(*seconds),
                compared(default),
                compared(best),
                best.map_or_else(|| "-".to_owned(), |(method, ..)| method.short()),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let heading =
        ["collective", "plug-in", "procs", "size", "n", "median", "default", "best other", "by"];
    format!(
        "\nPlug-ins (in brackets: relative to the plug-in's time)\n\n{}",
        output::aligned(&heading, rows.into_iter())
    )
}

fn plugin_name(plugin: &Plugin) -> String {
    match plugin.suboptions() {
        "" => plugin.symbol().to_owned(),
        suboptions => format!("{} ({suboptions})", plugin.symbol()),
    }
}
