//! Damages a file: as a slip of the pen, a torn write, a wrong tool or an ill will would.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::tokens::{LETTERS, MARKS, NO_TEXT, NUMBERS};

/// At most so many damages to one file.
const MAX_DAMAGES: u32 = 8;
/// One file in so many gets something very long or very deep.
const HUGE_ONCE_IN: u32 = 400;

/// Damages files, the same ones for the same seed.
#[derive(Debug)]
pub struct Mutator {
    random: Pcg64Mcg,
    words: &'static [&'static str],
}

impl Mutator {
    /// `words` are those of the format: keys, names, units.
    pub fn new(seed: u64, words: &'static [&'static str]) -> Self {
        Mutator { random: Pcg64Mcg::seed_from_u64(seed), words }
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { self.random.random_range(0..end) }
    }

    /// Damages `input` one to eight times, few damages more often than many; `other` is a second
    /// file, to take parts from.
    pub fn damage(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let mut damages = 1;
        while damages < MAX_DAMAGES && self.random.random_bool(0.45) {
            damages += 1;
        }
        for _ in 0..damages {
            self.damage_once(input, other);
        }
        if self.random.random_ratio(1, HUGE_ONCE_IN) {
            self.blow_up(input);
        }
    }

    fn damage_once(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        match self.random.random_range(0..100) {
            0..4 => self.flip_a_bit(input),
            4..7 => self.set_a_byte(input),
            7..12 => self.insert(input),
            12..16 => self.delete(input),
            16..19 => self.repeat_part(input),
            19..23 => self.take_part(input, other),
            23..25 => self.splice(input, other),
            25..27 => self.truncate(input),
            27..47 => self.change_a_number(input),
            47..56 => self.change_a_word(input),
            56..62 => self.swap_tokens(input),
            62..65 => self.delete_token(input),
            65..75 => self.change_lines(input),
            75..87 => self.change_a_group(input, other),
            87..94 => self.put_a_letter(input),
            94..96 => self.change_line_ends(input),
            96..98 => self.nest(input, 8),
            _ => self.change_case(input),
        }
    }

    fn flip_a_bit(&mut self, input: &mut [u8]) {
        let at = self.below(input.len());
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << self.random.random_range(0..8);
        }
    }

    fn set_a_byte(&mut self, input: &mut [u8]) {
        let at = self.below(input.len());
        if let Some(byte) = input.get_mut(at) {
            *byte = self.random.random();
        }
    }

    fn insert(&mut self, input: &mut Vec<u8>) {
        let text = match self.random.random_range(0..4) {
            0 => (0..=self.below(6)).map(|_| self.random.random()).collect(),
            1 => self.number(),
            2 => self.word().into(),
            _ => self.one_of(MARKS).into(),
        };
        let at = self.below(input.len() + 1);
        input.splice(at..at, text);
    }

    fn delete(&mut self, input: &mut Vec<u8>) {
        let part = self.part(input, 32);
        input.drain(part);
    }

    fn repeat_part(&mut self, input: &mut Vec<u8>) {
        let part = self.part(input, 64);
        let copy = input[part.clone()].to_vec();
        let times = 1 + self.below(3);
        input.splice(part.end..part.end, copy.repeat(times));
    }

    fn take_part(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let part = self.part(other, 64);
        let place = self.part(input, 64);
        let place = if self.random.random() { place } else { place.start..place.start };
        input.splice(place, other[part].iter().copied());
    }

    fn splice(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let (end, begin) = (self.below(input.len() + 1), self.below(other.len() + 1));
        input.truncate(end);
        input.extend_from_slice(&other[begin..]);
    }

    fn truncate(&mut self, input: &mut Vec<u8>) {
        let end = self.below(input.len() + 1);
        input.truncate(end);
    }

    fn change_a_number(&mut self, input: &mut Vec<u8>) {
        let Some(token) = self.token(input, is_of_number) else { return self.insert(input) };
        let told = String::from_utf8_lossy(&input[token.clone()]).into_owned();
        let changed = match (self.random.random_range(0..6), told.parse::<i128>()) {
            (0, Ok(number)) => number.saturating_add(1).to_string().into(),
            (1, Ok(number)) => number.saturating_sub(1).to_string().into(),
            (2, Ok(number)) => number.saturating_mul(10).to_string().into(),
            (2, Err(_)) => format!("{told}0").into(),
            (3, _) => format!("-{told}").into(),
            _ => self.number(),
        };
        input.splice(token, changed);
    }

    fn change_a_word(&mut self, input: &mut Vec<u8>) {
        let Some(token) = self.token(input, is_of_word) else { return self.insert(input) };
        let word = self.word();
        input.splice(token, word.bytes());
    }

    fn swap_tokens(&mut self, input: &mut Vec<u8>) {
        let class = if self.random.random() { is_of_number } else { is_of_word };
        let (Some(one), Some(other)) = (self.token(input, class), self.token(input, class)) else {
            return;
        };
        let (first, second) = if one.start < other.start { (one, other) } else { (other, one) };
        if first.end > second.start {
            return;
        }
        let [a, b] = [&first, &second].map(|token| input[token.clone()].to_vec());
        input.splice(second, a);
        input.splice(first, b);
    }

    fn delete_token(&mut self, input: &mut Vec<u8>) {
        let class = if self.random.random() { is_of_number } else { is_of_word };
        if let Some(token) = self.token(input, class) {
            input.drain(token);
        }
    }

    /// Deletes a line, says it twice, puts it elsewhere.
    fn change_lines(&mut self, input: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        let (from, to) = (self.below(lines.len()), self.below(lines.len()));
        let Some(&line) = lines.get(from) else { return };
        match self.random.random_range(0..4) {
            0 => drop(lines.remove(from)),
            1 => lines.insert(from, line),
            2 => lines.insert(to, line),
            _ => lines.swap(from, to),
        }
        *input = lines.concat();
    }

    /// Deletes, repeats or exchanges something that stands between brackets or quotation marks.
    fn change_a_group(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let Some(group) = self.group(input) else { return self.insert(input) };
        let instead = match self.random.random_range(0..7) {
            0 => Vec::new(),
            1 => {
                let copy = &input[group.clone()];
                [copy, b",", copy].concat()
            }
            2 => self.group(other).map(|of| other[of].to_vec()).unwrap_or_default(),
            3 => self.group(input).map(|of| input[of].to_vec()).unwrap_or_default(),
            4 => self.number(),
            5 => {
                self.one_of(&["null", "[]", "{}", "\"\"", "true", "[null]", "[{}]", "\"x\""]).into()
            }
            _ => {
                let word = self.word();
                format!("\"{word}\"").into()
            }
        };
        input.splice(group, instead);
    }

    fn put_a_letter(&mut self, input: &mut Vec<u8>) {
        let letter: &[u8] = match self.random.random_bool(0.85) {
            true => self.one_of(LETTERS).as_bytes(),
            false => NO_TEXT[self.below(NO_TEXT.len())],
        };
        // Between letters where they are, so that it gets into names.
        let word = self.token(input, is_of_word).filter(|_| self.random.random_bool(0.7));
        let at = match word {
            Some(token) => token.start + self.below(token.len() + 1),
            None => self.below(input.len() + 1),
        };
        input.splice(at..at, letter.iter().copied());
    }

    fn change_line_ends(&mut self, input: &mut Vec<u8>) {
        let end: &[u8] = match self.random.random_range(0..4) {
            0 => b"\r",
            1 => b"\n\r",
            2 => b"\n\n",
            _ => b"\r\n",
        };
        *input = input.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(end);
    }

    /// Opens brackets, and closes them or not.
    fn nest(&mut self, input: &mut Vec<u8>, most: usize) {
        let depth = 1 + self.below(most);
        let (open, close) = match self.random.random_range(0..4) {
            0 => ("{\"a\":", "}"),
            1 => ("{", "}"),
            2 => ("\"", "\""),
            _ => ("[", "]"),
        };
        let at = match self.group(input).filter(|_| self.random.random()) {
            Some(group) => {
                let inside = input[group.clone()].to_vec();
                let around = [open, close].map(|mark| mark.repeat(depth).into_bytes());
                input.splice(group, [&around[0][..], &inside, &around[1]].concat());
                return;
            }
            None => self.below(input.len() + 1),
        };
        let closed = if self.random.random() { close.repeat(depth) } else { String::new() };
        input.splice(at..at, (open.repeat(depth) + &closed).into_bytes());
    }

    fn change_case(&mut self, input: &mut [u8]) {
        let Some(token) = self.token(input, is_of_word) else { return };
        let upper = self.random.random();
        for byte in &mut input[token] {
            *byte = if upper { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
        }
    }

    /// Something very long or very deep.
    fn blow_up(&mut self, input: &mut Vec<u8>) {
        const LONG: usize = 1 << 17;
        let at = match self.token(input, is_of_word) {
            Some(token) => token.end,
            None => self.below(input.len() + 1),
        };
        let what = match self.random.random_range(0..6) {
            0 => return self.nest(input, 100_000),
            1 => "9".repeat(self.below(LONG)).into_bytes(),
            2 => "\u{e4}".repeat(self.below(LONG / 2)).into_bytes(),
            3 => "\n".repeat(self.below(LONG)).into_bytes(),
            4 => {
                let word = self.word();
                format!("{word},").repeat(self.below(LONG) / (word.len() + 1)).into_bytes()
            }
            _ => {
                let part = self.part(input, 256);
                input[part.clone()].repeat(self.below(LONG) / (part.len() + 1))
            }
        };
        input.splice(at..at, what);
    }

    fn number(&mut self) -> Vec<u8> {
        match self.random.random_range(0..8) {
            0 => self.random.random::<u64>().to_string().into(),
            1 => (1_u64 << self.random.random_range(0..64)).to_string().into(),
            2 => self.random.random_range(0..70).to_string().into(),
            3 => format!("{:e}", f64::from_bits(self.random.random())).into(),
            4 if self.random.random_bool(0.1) => "7".repeat(1 + self.below(400)).into(),
            _ => self.one_of(NUMBERS).into(),
        }
    }

    fn word(&mut self) -> &'static str {
        match self.words {
            [] => self.one_of(MARKS),
            words => self.one_of(words),
        }
    }

    fn one_of(&mut self, texts: &'static [&'static str]) -> &'static str {
        texts.get(self.below(texts.len())).copied().unwrap_or_default()
    }

    /// A part of at most so many bytes.
    fn part(&mut self, of: &[u8], most: usize) -> Range<usize> {
        let start = self.below(of.len() + 1);
        start..start + self.below((of.len() - start).min(most) + 1)
    }

    /// A run of bytes of one class, from a place chosen by chance on.
    fn token(&mut self, input: &[u8], class: fn(u8) -> bool) -> Option<Range<usize>> {
        let from = self.below(input.len());
        let ahead = input[from..].iter().position(|byte| class(*byte)).map(|at| from + at);
        let inside = ahead.or_else(|| input.iter().position(|byte| class(*byte)))?;
        let start = input[..inside].iter().rposition(|byte| !class(*byte)).map_or(0, |at| at + 1);
        let length = input[start..].iter().take_while(|byte| class(**byte)).count();
        Some(start..start + length)
    }

    /// What stands between a bracket or quotation mark and the one that closes it, both included.
    fn group(&mut self, input: &[u8]) -> Option<Range<usize>> {
        let from = self.below(input.len());
        let opens = |byte: &u8| matches!(byte, b'{' | b'[' | b'"');
        let start = from + input[from..].iter().position(opens)?;
        let mut depth = 0_usize;
        let mut quoted = false;
        for (at, byte) in input.iter().enumerate().skip(start) {
            match byte {
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 && !quoted {
                return Some(start..at + 1);
            }
        }
        None
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'+')
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FILE: &[u8] = b"{\n  \"procs\": 8,\n  \"ranges\": [{\"first\": 1}, {\"first\": 2}]\n}\n";

    fn damaged(seed: u64, count: usize) -> Vec<Vec<u8>> {
        let mut mutator = Mutator::new(seed, &["procs", "bcast"]);
        let one = |mutator: &mut Mutator| {
            let mut file = FILE.to_vec();
            mutator.damage(&mut file, b"[1, {\"other\": 2}]");
            file
        };
        (0..count).map(|_| one(&mut mutator)).collect()
    }

    #[test]
    fn a_seed_repeats_all_damages_and_another_makes_others() {
        assert_eq!(damaged(1, 500), damaged(1, 500));
        let [one, other] =
            [1, 2].map(|seed| damaged(seed, 500).into_iter().collect::<BTreeSet<_>>());
        assert!(one.len() > 400, "only {} of 500 differ", one.len());
        assert!(one.intersection(&other).count() < 100);
    }

    #[test]
    fn every_kind_of_damage_comes_up() {
        let all = damaged(3, 20_000);
        let holds = |text: &str| {
            let text = text.as_bytes();
            all.iter().any(|file| file.windows(text.len()).any(|part| part == text))
        };
        for text in ["1e400", "18446744073709551615", "bcast", "other", "\r\n", "\u{1f600}", "[[[["]
        {
            assert!(holds(text), "{text:?} never came up");
        }
        assert!(all.iter().any(|file| file.len() < FILE.len() / 4), "never truncated");
        assert!(all.iter().any(|file| file.len() > 50_000), "never very long");
        assert!(all.iter().any(|file| std::str::from_utf8(file).is_err()), "always text");
        assert!(all.iter().any(|file| serde_json::from_slice::<serde_json::Value>(file).is_ok()));
    }
}
