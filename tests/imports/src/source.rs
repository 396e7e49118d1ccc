//! What one file declares, hands on and names.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Token, tokens};

/// The names of a path, as `crate`, `a`, `Item`.
pub type Path = Vec<String>;

/// One file's text, as far as imports go.
#[derive(Debug, Default)]
pub struct SourceFile {
    /// Modules in files of their own.
    pub modules: BTreeSet<String>,
    /// Names that are defined here, at any depth.
    pub defined: BTreeSet<String>,
    /// What is imported: by the name that it has here.
    pub imported: BTreeMap<String, Path>,
    /// `use path::*`.
    pub globs: Vec<Path>,
    /// Every path that is named, but those that are only handed on.
    pub named: Vec<Path>,
    /// `pub use` paths, with whether all that is below them is meant.
    pub handed_on: Vec<Path>,
}

const DEFINING: [&str; 10] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules", "mod"];

impl SourceFile {
    /// Reads a file's text.
    pub fn read(text: &str) -> Self {
        let mut reader = UseReader {
            tokens: tokens(text),
            at: 0,
            source: SourceFile::default(),
            inline: Vec::new(),
            depth: 0,
        };
        reader.read();
        reader.source
    }
}

struct UseReader {
    tokens: Vec<Token>,
    at: usize,
    source: SourceFile,
    /// The depths at which modules within the file began.
    inline: Vec<usize>,
    depth: usize,
}

impl UseReader {
    fn peek(&self, further: usize) -> &str {
        self.tokens.get(self.at + further).map_or("", String::as_str)
    }

    fn read(&mut self) {
        let mut is_public = false;
        while self.at < self.tokens.len() {
            match (self.peek(0), self.peek(1)) {
                ("#", "[") if self.is_test_attribute() => {
                    self.skip_item();
                    is_public = false;
                    continue;
                }
                ("{", _) => self.depth += 1,
                ("}", _) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.inline.retain(|&depth| depth <= self.depth);
                }
                ("pub", "(") => {
                    is_public = true;
                    self.at +=
                        self.tokens[self.at..].iter().position(|it| it == ")").unwrap_or(0) + 1;
                    continue;
                }
                ("pub", _) => {
                    is_public = true;
                    self.at += 1;
                    continue;
                }
                // `impl Trait + use<'a>` imports nothing.
                ("use", next) if next != "<" => {
                    self.at += 1;
                    self.read_use(&mut Vec::new(), is_public);
                }
                ("mod", name) if self.peek(2) == ";" => {
                    self.source.modules.insert(name.to_owned());
                    self.at += 1;
                }
                (word, name) if DEFINING.contains(&word) => {
                    let name = if name == "!" { self.peek(2) } else { name }.to_owned();
                    if word == "mod" {
                        self.inline.push(self.depth + 1);
                    }
                    self.source.defined.insert(name);
                    self.at += 1;
                }
                (_, "::") if self.at == 0 || self.tokens[self.at - 1] != "::" => {
                    self.read_path();
                    continue;
                }
                _ => {}
            }
            is_public = false;
            self.at += 1;
        }
    }

    fn is_test_attribute(&self) -> bool {
        let end = self.tokens[self.at..].iter().position(|it| it == "]").unwrap_or(0);
        let attribute = self.tokens[self.at..self.at + end].concat();
        attribute.starts_with("#[cfg(test") || attribute.starts_with("#[cfg(all(test")
    }

    /// Goes past the item that begins here with its attributes.
    fn skip_item(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            let token = self.peek(0).to_owned();
            self.at += 1;
            match token.as_str() {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            let ends = token == ";" || token == "}";
            if depth == 0 && ends {
                return;
            }
        }
    }

    fn read_path(&mut self) {
        let mut path = vec![self.peek(0).to_owned()];
        self.at += 1;
        while self.peek(0) == "::"
            && self.peek(1).chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        {
            path.push(self.peek(1).to_owned());
            self.at += 2;
        }
        let path = self.outside_of_inline(path);
        self.source.named.push(path);
    }

    /// A tree of `use` behind `before`.
    fn read_use(&mut self, before: &mut Path, is_public: bool) {
        let begun = before.len();
        loop {
            match self.peek(0).to_owned().as_str() {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while self.peek(0) != "}" && !self.peek(0).is_empty() {
                        self.read_use(before, is_public);
                        if self.peek(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    before.truncate(begun);
                    return;
                }
                "*" => {
                    self.at += 1;
                    let path = self.outside_of_inline(before.clone());
                    self.source.globs.push(path.clone());
                    self.note(path, is_public);
                    before.truncate(begun);
                    return;
                }
                "," | ";" | "}" | "" => break,
                "as" => {
                    let name = self.peek(1).to_owned();
                    self.at += 2;
                    self.import(before.clone(), Some(name), is_public);
                    before.truncate(begun);
                    return;
                }
                name => {
                    before.push(name.to_owned());
                    self.at += 1;
                }
            }
        }
        self.import(before.clone(), None, is_public);
        before.truncate(begun);
    }

    fn import(&mut self, mut path: Path, name: Option<String>, is_public: bool) {
        // `use a::{self}` is `use a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let path = self.outside_of_inline(path);
        if let Some(name) = name.or_else(|| path.last().cloned()) {
            self.source.imported.insert(name, path.clone());
        }
        self.note(path, is_public);
    }

    fn note(&mut self, path: Path, is_public: bool) {
        match is_public {
            true => self.source.handed_on.push(path),
            false => self.source.named.push(path),
        }
    }

    /// What `super` of a module within the file means: the file itself.
    fn outside_of_inline(&self, path: Path) -> Path {
        let depth = self.inline.len();
        let supers = path.iter().take_while(|name| *name == "super").count();
        let inside = supers.min(depth);
        let rest = path.into_iter().skip(inside);
        match inside == supers && inside > 0 {
            true => std::iter::once("self".to_owned()).chain(rest).collect(),
            false => rest.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SourceFile;

    #[test]
    fn a_file_tells_what_it_names() {
        let source = SourceFile::read(
            "mod a; pub mod b;\n#[cfg(test)]\nmod tests;\n#[cfg(test)] mod own { use crate::not; }\n\
             pub use a::{Item, deeper::{self, Other as Another}};\nuse super::c::*;\n\
             fn f() { crate::d::g::<u8>(); super::super::e::h!(); std::fs::read(\"x\"); }\n\
             mod inner { use super::K; use super::super::l; }\n\
             fn h() -> impl Sized + use<'_> { let a = 1; a }",
        );
        let texts = |paths: &[Vec<String>]| -> Vec<String> {
            paths.iter().map(|path| path.join("::")).collect()
        };
        assert_eq!(source.modules.into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(texts(&source.handed_on), ["a::Item", "a::deeper", "a::deeper::Other"]);
        assert_eq!(
            texts(&source.named),
            [
                "super::c",
                "crate::d::g",
                "super::super::e::h",
                "std::fs::read",
                "self::K",
                "super::l"
            ]
        );
        assert_eq!(source.imported["Another"].join("::"), "a::deeper::Other");
        assert!(source.defined.contains("f"));
    }
}
