//! A decision function as a C header that needs no other file: C99 and later, C++11 and later.

use libraries::{Export, FileFormat, HowToLoad, Result, spans::ProcsSpan};
use records::{Collective, Method};

use super::source_code::{SourceLanguage, exporter, replaced_spans};

/// The header.
pub struct CHeader;

/// The form of its file.
pub static FORMAT: FileFormat = FileFormat {
    name: "c",
    about: "A decision function as a C header: (collective, ranks, bytes) to method",
    way: None,
    file: "choices.h",
    takes_library: false,
    exporter: |version, _| exporter::<CHeader>(version),
    read: None,
    compile: None,
};

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

impl SourceLanguage for CHeader {
    const NAME: &str = "C";
    const UNIT: &str = "header";

    fn text(export: &Export<'_>) -> Result<String> {
        let mut text = String::from("/* A decision function, written by colibri.\n");
        for line in export.comments {
            text += &format!("   {}\n", line.text.replace("*/", "* /").replace("/*", "/ *"));
        }
        text += &format!("*/\n{TYPES}");
        let mut asked = String::new();
        for rules in export.rules {
            let (collective, name) = (rules.collective, rules.collective.name());
            let spans = replaced_spans(rules)?;
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
        Ok(text)
    }

    fn how_to_use(file: &str) -> HowToLoad {
        let command = format!(
            "#include \"{file}\"; colibri_choose(\"bcast\", procs, bytes) gives the method's name \
             and its segment size"
        );
        HowToLoad::new("C", command)
    }
}

const DEFAULT: &str = "colibri_method_of(\"default\", 0)";

fn function(collective: Collective, spans: &[ProcsSpan]) -> String {
    let (name, size) = (collective.name(), collective.message_size());
    let mut text = format!(
        "/* {name}; bytes: {size}. */\nstatic inline struct colibri_method\n\
         colibri_{name}(unsigned procs, unsigned long long bytes)\n{{\n"
    );
    for ProcsSpan { first, last, ranges } in spans {
        text += &format!("    if (procs >= {first}u && procs <= {last}u) {{\n");
        for range in ranges.iter() {
            let method = literal(&range.choice.method);
            text += &match range.next_bytes() {
                Some(next) => format!(
                    "        if (bytes < {next}ull) {{\n            return {method};\n        }}\n"
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
