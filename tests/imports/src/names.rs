//! The types that a file defines.

use crate::tokens::{Token, tokens};

/// What a file defines at the level of its modules.
#[derive(Debug, Default)]
pub struct DefinedTypes {
    /// Names of structs, enums, unions, traits and type aliases, test modules left out.
    pub types: Vec<String>,
    /// Modules in files of their own that tests alone use.
    pub test_modules: Vec<String>,
}

const DEFINING: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

impl DefinedTypes {
    /// Reads a file's text.
    pub fn read(text: &str) -> Self {
        let tokens = tokens(text);
        let mut defined = DefinedTypes::default();
        // Of every brace that is open, whether it is a module's.
        let mut modules: Vec<bool> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let word = |further: usize| tokens.get(at + further).map_or("", String::as_str);
            if let Some(next) = after_test_attribute(&tokens, at) {
                if let ["mod", name, ";"] = [0, 1, 2].map(|it| peek(&tokens, next + it)) {
                    defined.test_modules.push(name.into());
                }
                at = end_of_item(&tokens, next);
                continue;
            }
            match (word(0), word(1), word(2)) {
                ("mod", _, "{") => {
                    modules.push(true);
                    at += 2;
                }
                ("{", ..) => modules.push(false),
                ("}", ..) => {
                    modules.pop();
                }
                (defining, name, _)
                    if DEFINING.contains(&defining)
                        && modules.iter().all(|is_module| *is_module)
                        && name.starts_with(char::is_uppercase) =>
                {
                    defined.types.push(name.into());
                }
                _ => {}
            }
            at += 1;
        }
        defined
    }
}

fn peek(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", String::as_str)
}

/// What follows `#[cfg(test)]` or `#[cfg(any(test, ...))]` and further attributes, if the former
/// stands here.
fn after_test_attribute(tokens: &[Token], at: usize) -> Option<usize> {
    let (mut next, mut is_test) = (at, false);
    while peek(tokens, next) == "#" && peek(tokens, next + 1) == "[" {
        let length = tokens[next..].iter().position(|token| token == "]")?;
        let attribute = &tokens[next + 2..next + length];
        let names = |name: &str| attribute.iter().any(|token| token == name);
        is_test |= names("cfg") && names("test") && !names("not");
        next += length + 1;
    }
    is_test.then_some(next)
}

/// The place behind an item that begins here: its `;`, or its closing brace.
fn end_of_item(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.as_str() {
            ";" if depth == 0 => return at + 1,
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::DefinedTypes;

    #[test]
    fn types_of_modules_are_found_and_those_of_tests_and_traits_are_not() {
        let text = "
            pub struct A<T> { b: T }
            mod inner { pub(crate) enum B { X { y: u8 } } type C = u8; }
            trait D { type E; fn f() { struct Local; } }
            impl D for A<u8> { type E = u8; }
            #[cfg(test)]
            mod tests { struct F; }
            #[cfg(test)]
            mod helpers;
            #[cfg(any(test, fuzzing))]
            #[derive(Debug)]
            struct G;
            #[derive(Debug)]
            struct H;
        ";
        let defined = DefinedTypes::read(text);
        assert_eq!(defined.types, ["A", "B", "C", "D", "H"]);
        assert_eq!(defined.test_modules, ["helpers"]);
    }
}
