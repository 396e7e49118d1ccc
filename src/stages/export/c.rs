//! A decision function as a C header that needs no other file: C99 and later, C++11 and later.

use libraries::{
    Result,
    spans::{ProcsSpan, spans},
};
use records::{Algorithm, Collective, Method, Point};

use super::{Export, Exporter, File};
use crate::error::usage;

/// The header.
pub struct CHeader;

impl CHeader {
    /// The same for every version of the language.
    ///
    /// # Errors
    /// A version is given.
    pub fn new(version: Option<&str>) -> anyhow::Result<Self> {
        if let Some(version) = version {
            usage!("--target-version {version}: the header is the same for every version of C");
        }
        Ok(CHeader)
    }
}

const TYPES: &str = "\
#ifndef COLIBRI_CHOICES_H
#define COLIBRI_CHOICES_H

#include <string.h>

/* What to run: the method's name, \"default\" where the library is left alone; segment_bytes is 0
   where the message is sent whole. */
struct colibri_method {
    const char *name;
    unsigned long long segment_bytes;
};

static inline struct colibri_method colibri_method_of(const char *name, unsigned long long segment)
{
    struct colibri_method method;
    method.name = name;
    method.segment_bytes = segment;
    return method;
}

";

impl Exporter for CHeader {
    fn target(&self) -> String {
        "C".into()
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
        let mut text = String::from("/* A decision function, written by colibri.\n");
        for line in export.origin {
            text += &format!("   {}\n", line.replace("*/", "* /").replace("/*", "/ *"));
        }
        text += &format!("*/\n{TYPES}");
        let mut asked = String::new();
        for rules in export.rules {
            let (collective, name) = (rules.collective, rules.collective.name());
            let spans = replaced(spans(rules, false)?);
            if spans.is_empty() {
                continue;
            }
            text += &function(collective, &spans);
            asked += &format!(
                "    if (strcmp(collective, \"{name}\") == 0) {{\n        \
                 return colibri_{name}(procs, bytes);\n    }}\n"
            );
        }
        text += &format!(
            "/* What to run for a collective by its name, in lower case and without MPI_. */\n\
             static inline struct colibri_method\n\
             colibri_choose(const char *collective, unsigned procs, unsigned long long bytes)\n{{\n\
             {asked}    (void)collective;\n    (void)procs;\n    (void)bytes;\n    \
             return {DEFAULT};\n}}\n\n#endif\n"
        );
        Ok(vec![File { name: String::new(), text }])
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> String {
        format!(
            "C:  #include \"{file}\"; colibri_choose(\"bcast\", procs, bytes) gives the method's name \
             and its segment size"
        )
    }
}

const DEFAULT: &str = "colibri_method_of(\"default\", 0)";

/// The spans in which the default is replaced anywhere.
pub(super) fn replaced(mut spans: Vec<ProcsSpan>) -> Vec<ProcsSpan> {
    spans.retain(|span| span.bands.iter().any(|band| band.method != Method::Default));
    spans
}

fn function(collective: Collective, spans: &[ProcsSpan]) -> String {
    let (name, size) = (collective.name(), collective.message_size());
    let mut text = format!(
        "/* {name}; bytes: {size}. */\nstatic inline struct colibri_method\n\
         colibri_{name}(unsigned procs, unsigned long long bytes)\n{{\n"
    );
    for ProcsSpan { first, last, bands } in spans {
        text += &format!("    if (procs >= {first}u && procs <= {last}u) {{\n");
        for (index, band) in bands.iter().enumerate() {
            let method = literal(&band.method);
            text += &match bands.get(index + 1) {
                Some(next) => format!(
                    "        if (bytes < {}ull) {{\n            return {method};\n        }}\n",
                    next.from_bytes
                ),
                None => format!("        return {method};\n"),
            };
        }
        text += "    }\n";
    }
    text + &format!("    return {DEFAULT};\n}}\n\n")
}

/// A method, its segment size beside its name.
fn literal(method: &Method) -> String {
    let name = method.clone().with_segment(0).to_string();
    let escaped: String = name.bytes().map(escape).collect();
    format!("colibri_method_of(\"{escaped}\", {}ull)", method.segment_bytes())
}

/// A byte in a string literal; names of plug-ins hold paths.
fn escape(byte: u8) -> String {
    match byte {
        b'"' | b'\\' | b'?' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_inside_its_literal() {
        let bytes = "a\"b\\é\n".bytes().map(escape).collect::<String>();
        assert_eq!(bytes, r#"a\"b\\\303\251\012"#);
    }
}
