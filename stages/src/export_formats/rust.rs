//! A decision function as a Rust module that needs no crate.

use libraries::{Export, FileFormat, HowToLoad, Result, spans::ProcsSpan};
use records::{Collective, Method};

use super::source_code::{SourceLanguage, exporter, replaced_spans};

pub struct RustModule;

/// The form of its file.
pub static FORMAT: FileFormat = FileFormat {
    name: "rust",
    about: "A decision function as a Rust module",
    way: None,
    file: "choices.rs",
    takes_library: false,
    exporter: |version, _| exporter::<RustModule>(version),
    read: None,
    compile: None,
};

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

impl SourceLanguage for RustModule {
    const NAME: &str = "Rust";
    const UNIT: &str = "module";

    fn text(export: &Export<'_>) -> Result<String> {
        let mut text = String::from("// A decision function, written by colibri.\n");
        export.comments.iter().for_each(|line| text += &format!("// {line}\n"));
        text += &format!("\n{TYPES}");
        let (mut asked, mut functions) = (String::new(), String::new());
        for rules in export.rules {
            let name = rules.collective.name();
            let spans = replaced_spans(rules)?;
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
        Ok(text)
    }

    fn how_to_use(file: &str) -> HowToLoad {
        let command = format!(
            "take {file} as a module; choose(\"bcast\", procs, bytes) gives the method's name and \
             its segment size"
        );
        HowToLoad::new("Rust", command)
    }
}

fn function(collective: Collective, spans: &[ProcsSpan]) -> String {
    let (name, size) = (collective.name(), collective.message_size());
    let mut text = format!(
        "\n/// {name}; `bytes`: {size}.\n\
         pub fn {name}(procs: u32, bytes: u64) -> Method {{\n    match procs {{\n"
    );
    for ProcsSpan { first, last, ranges } in spans {
        text += &format!("        {first}..={last} => match bytes {{\n");
        for range in ranges.iter() {
            let method = literal(&range.choice.method);
            text += &match range.next_bytes() {
                Some(next) => format!("            ..{next} => {method},\n"),
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
