//! Rust text as words and marks, without comments and the insides of literals.

/// A token: a word (also a keyword), `::`, or one mark. Literals are the mark `"`.
pub type Token = String;

/// Takes a file's text apart.
pub fn tokens(text: &str) -> Vec<Token> {
    let all: Vec<char> = text.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < all.len() {
        let (next, second) = (all[at], all.get(at + 1).copied().unwrap_or(' '));
        let begun = at;
        at = match (next, second) {
            ('/', '/') => end_of_line(&all, at),
            ('/', '*') => end_of_comment(&all, at),
            ('r' | 'b' | 'c', '"' | '#' | 'r') if is_raw(&all, at).is_some() => {
                tokens.push("\"".into());
                is_raw(&all, at).unwrap_or(at + 1)
            }
            ('"', _) => {
                tokens.push("\"".into());
                end_of_quoted(&all, at, '"')
            }
            // A lifetime has no second quote right after its first letter.
            ('\'', _) if second == '\\' || all.get(at + 2) == Some(&'\'') => {
                end_of_quoted(&all, at, '\'')
            }
            (':', ':') => {
                tokens.push("::".into());
                at + 2
            }
            _ if is_of_word(next) => {
                while at < all.len() && is_of_word(all[at]) {
                    at += 1;
                }
                tokens.push(all[begun..at].iter().collect());
                at
            }
            _ => {
                if !next.is_whitespace() {
                    tokens.push(next.into());
                }
                at + 1
            }
        };
    }
    tokens
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn end_of_line(all: &[char], from: usize) -> usize {
    (from..all.len()).find(|&at| all[at] == '\n').unwrap_or(all.len())
}

/// Comments stand inside one another.
fn end_of_comment(all: &[char], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at + 1 < all.len() {
        match (all[at], all[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') if depth == 1 => return at + 2,
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    all.len()
}

fn end_of_quoted(all: &[char], from: usize, quote: char) -> usize {
    let mut at = from + 1;
    while at < all.len() && all[at] != quote {
        at += if all[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The end of a raw string that begins here, as `r#"..."#`, if one does.
fn is_raw(all: &[char], from: usize) -> Option<usize> {
    let word = (from..all.len()).find(|&at| !is_of_word(all[at]))?;
    let prefix: String = all[from..word].iter().collect();
    if !["r", "br", "cr"].contains(&prefix.as_str()) {
        return None;
    }
    let quote = (word..all.len()).find(|&at| all[at] != '#').filter(|&at| all[at] == '"')?;
    let hashes = quote - word;
    let ends = |&at: &usize| {
        all[at] == '"' && (1..=hashes).all(|further| all.get(at + further) == Some(&'#'))
    };
    Some((quote + 1..all.len()).find(ends)? + hashes + 1)
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn comments_and_literals_name_nothing() {
        let text = r####"
            // use crate::a;
            /* use crate::b; /* nested */ use crate::c; */
            let x: &'static str = "use crate::d; \" still"; let y = r#"crate::e " "#;
            let q = '"'; let e = '\''; use crate::{f, g as h};
        "####;
        let told = tokens(text).join(" ");
        assert!(told.contains("use crate :: { f , g as h } ;"), "{told}");
        assert!(
            !["a", "b", "c", "d", "e"]
                .map(|name| format!("crate :: {name}"))
                .iter()
                .any(|it| told.contains(it)),
            "{told}"
        );
        assert!(told.contains("& ' static str = \" ; let y = \" ;"), "{told}");
    }
}
