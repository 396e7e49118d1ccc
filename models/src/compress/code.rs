//! A decision function as source code, as in Open MPI's `coll_tuned_decision_fixed.c`: nested
//! questions about the sizes of communicator and message.

use std::fmt::Write as _;

use libraries::openmpi;
use records::Method;

use super::{Compressed, DecisionNode};

/// Of which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C99, without any header but `stddef.h`.
    C,
    /// Rust, without any crate.
    Rust,
}

impl Compressed {
    /// The function as source code: a table of methods and a function that gives the index of one.
    /// `origin` goes into the comment at the top, one line each.
    pub fn code(&self, language: Language, origin: &[String]) -> String {
        let mut text = String::new();
        let name = self.collective.name();
        let size = self.collective.message_size();
        let mut head = vec![
            format!("Decision function of {name}, written by colibri."),
            format!("Message size: {size}."),
            "openmpi: the number of Open MPI's coll/tuned algorithm, 0 where it has none.".into(),
        ];
        head.extend(origin.iter().cloned());
        match language {
            Language::C => {
                text += "/*\n";
                head.iter().for_each(|line| text += &format!(" * {}\n", line.replace("*/", "* /")));
                text += &format!(
                    " */\n#include <stddef.h>\n\nstruct colibri_{name}_method {{\n    \
                     const char *algorithm;\n    int openmpi;\n    size_t segment_bytes;\n}};\n\n\
                     const struct colibri_{name}_method colibri_{name}_methods[] = {{\n"
                );
                self.methods.iter().for_each(|method| text += &self.row(method, "    {", "},\n"));
                text += &format!(
                    "}};\n\nint colibri_{name}(unsigned communicator_size, size_t message_size)\n{{\n"
                );
            }
            Language::Rust => {
                head.iter().for_each(|line| text += &format!("// {line}\n"));
                text += &format!(
                    "\n/// (algorithm, openmpi, segment size in bytes).\n\
                     pub const {}_METHODS: &[(&str, u32, u64)] = &[\n",
                    name.to_uppercase()
                );
                self.methods.iter().for_each(|method| text += &self.row(method, "    (", "),\n"));
                text += &format!(
                    "];\n\n/// The index of the method.\n\
                     pub fn {name}(communicator_size: u32, message_size: u64) -> usize {{\n"
                );
            }
        }
        self.node(language, 0, 1, &mut text);
        text += "}\n";
        text
    }

    fn row(&self, method: &Method, open: &str, close: &str) -> String {
        let (algorithm, segment) = (method.algorithm(), method.segment_bytes());
        let number = algorithm.and_then(|algorithm| openmpi::find(self.collective, algorithm));
        let number = number.map_or(0, |row| row.id);
        let name = algorithm.map_or("default", |algorithm| algorithm.name());
        format!("{open}\"{name}\", {number}, {segment}{close}")
    }

    fn node(&self, language: Language, node: u32, depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        let (question, then) = match self.nodes[node as usize] {
            DecisionNode::Method(method) => {
                let comment = &self.methods[method as usize];
                let _ = match language {
                    Language::C => writeln!(text, "{indent}return {method}; /* {comment} */"),
                    Language::Rust => writeln!(text, "{indent}{method} // {comment}"),
                };
                return;
            }
            DecisionNode::Procs { from, then } => (format!("communicator_size < {from}"), then),
            DecisionNode::Bytes { from, then } => (format!("message_size < {from}"), then),
        };
        let open = match language {
            Language::C => format!("{indent}if ({question}) {{\n"),
            Language::Rust => format!("{indent}if {question} {{\n"),
        };
        *text += &open;
        self.node(language, then[0], depth + 1, text);
        *text += &format!("{indent}}} else {{\n");
        self.node(language, then[1], depth + 1, text);
        *text += &format!("{indent}}}\n");
    }
}
