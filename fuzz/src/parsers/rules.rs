use std::path::Path;

use libraries::openmpi::rules::{self, LoadedRules};
use verification::functions::DecisionFunction;

use super::{FILE, points, refused_with};
use crate::{Answer, Inputs, Parser, files};

/// Open MPI's rules files.
pub fn rules() -> Parser {
    const WORDS: &[&str] = &[
        "0 ",
        "1 ",
        "2 ",
        "3 ",
        "4 ",
        "5 ",
        "6 ",
        "7 ",
        "9 ",
        "14 ",
        "21 ",
        "22 ",
        "# ",
        "\n",
        "8192 ",
        "rule-file-version-2",
    ];
    Parser { name: "rules", samples: files::rules(), words: WORDS, inputs: Inputs::SMALL, read }
}

fn read(input: &[u8]) -> Answer {
    let Ok(text) = str::from_utf8(input) else { return Answer::Refused };
    match rules::parse(text, Path::new(FILE)) {
        Ok(rules) => {
            look_up(&rules);
            Answer::Accepted
        }
        Err(error) => refused_with(&error),
    }
}

fn look_up(rules: &LoadedRules) {
    for point in points() {
        match rules.method(point) {
            Ok(method) => assert_eq!(method.to_string().parse(), Ok(method)),
            Err(words) => assert!(!words.is_empty()),
        }
    }
    let samples = files::samples();
    let function = DecisionFunction::of_rules("loaded", |point| rules.method(point), &samples);
    assert_eq!(function.decided.len(), samples.points().count());
}
