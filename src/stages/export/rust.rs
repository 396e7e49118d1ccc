//! A decision function as a Rust module that needs no crate.

use libraries::{
    Result,
    spans::{ProcsSpan, spans},
};
use records::{Algorithm, Collective, Method, Point};

use super::{Export, Exporter, File, c::replaced};
use crate::error::usage;

/// The module.
pub struct RustModule;

impl RustModule {
    /// The same for every version of the language.
    ///
    /// # Errors
    /// A version is given.
    pub fn new(version: Option<&str>) -> anyhow::Result<Self> {
        if let Some(version) = version {
            usage!("--target-version {version}: the module is the same for every version of Rust");
        }
        Ok(RustModule)
    }
}

const TYPES: &str = "\
/// What to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Its name, `default` where the library is left alone.
    pub name: &'static str,
    /// 0 where the message is sent whole.
    pub segment_bytes: u64,
}

const fn method(name: &'static str, segment_bytes: u64) -> Method {
    Method { name, segment_bytes }
}

";

const DEFAULT: &str = "method(\"default\", 0)";

impl Exporter for RustModule {
    fn target(&self) -> String {
        "Rust".into()
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        Method::Own { algorithm, segment_bytes }
    }

    fn express(&self, _: Point, _: &Method) -> Result<(), String> {
        Ok(())
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        models::algorithms(collective).to_vec()
    }

    fn one_for_all_sizes(&self, _: Collective) -> Option<&'static str> {
        None
    }

    fn message_size(&self, _: Collective) -> Option<&'static str> {
        None
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let mut text = String::from("// A decision function, written by colibri.\n");
        export.origin.iter().for_each(|line| text += &format!("// {line}\n"));
        text += &format!("\n{TYPES}");
        let (mut asked, mut functions) = (String::new(), String::new());
        for rules in export.rules {
            let name = rules.collective.name();
            let spans = replaced(spans(rules, false)?);
            if spans.is_empty() {
                continue;
            }
            functions += &function(rules.collective, &spans);
            asked += &format!("        \"{name}\" => {name}(procs, bytes),\n");
        }
        text += &format!(
            "/// What to run for a collective by its name, in lower case and without `MPI_`.\n\
             #[allow(unused_variables, clippy::match_single_binding)]\n\
             pub fn choose(collective: &str, procs: u32, bytes: u64) -> Method {{\n    \
             match collective {{\n{asked}        _ => {DEFAULT},\n    }}\n}}\n{functions}"
        );
        Ok(vec![File { name: String::new(), text }])
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> String {
        format!(
            "Rust:  take {file} as a module; choose(\"bcast\", procs, bytes) gives the method's name \
             and its segment size"
        )
    }
}

fn function(collective: Collective, spans: &[ProcsSpan]) -> String {
    let (name, size) = (collective.name(), collective.message_size());
    let mut text = format!(
        "\n/// {name}; `bytes`: {size}.\n\
         pub fn {name}(procs: u32, bytes: u64) -> Method {{\n    match procs {{\n"
    );
    for ProcsSpan { first, last, bands } in spans {
        text += &format!("        {first}..={last} => match bytes {{\n");
        for (index, band) in bands.iter().enumerate() {
            let method = literal(&band.method);
            text += &match bands.get(index + 1) {
                Some(next) => format!("            ..{} => {method},\n", next.from_bytes),
                None => format!("            _ => {method},\n"),
            };
        }
        text += "        },\n";
    }
    text + &format!("        _ => {DEFAULT},\n    }}\n}}\n")
}

/// A method, its segment size beside its name.
fn literal(method: &Method) -> String {
    format!("method({:?}, {})", method.clone().with_segment(0).to_string(), method.segment_bytes())
}
