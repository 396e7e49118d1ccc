//! A program that prints what its calls did, with `libcolibri.so` against without.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::{
    LONGEST_SECONDS, TestFolder, TestLibrary,
    aside::{
        CaseNames, ForcedMethods, NativeRun, TestProgram, collective, force, is_of, leads_to,
        reference,
    },
    stderr, stdout,
};

/// A program of one library.
pub struct Compiled {
    pub source: String,
    pub path: PathBuf,
    options: Vec<String>,
}

impl Compiled {
    /// Nothing, with a printed reason, where there is no compiler.
    pub fn new(bench: &TestFolder, source: &str, options: &[&str]) -> Option<Self> {
        let path = bench.compile(source, options)?;
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Some(Compiled { source: source.into(), path, options })
    }
}

/// What a program prints without the library, for comparison.
pub struct NativeOutput<'a> {
    bench: &'a TestFolder,
    program: &'a Compiled,
    ranks: u32,
    pub native: NativeRun,
    /// Cases in which the library alone gives other data than another library; looked for when first
    /// needed.
    odd: Option<CaseNames>,
}

impl<'a> NativeOutput<'a> {
    /// # Errors
    /// The library alone can't carry the program out; see [`TestProgram::natively`].
    pub fn new(bench: &'a TestFolder, program: &'a Compiled, ranks: u32) -> Result<Self, String> {
        let words = [program.path.to_str().unwrap()];
        let native = TestProgram { bench, ranks, words: &words }.natively(CaseNames::new())?;
        // Wrong arguments are left out there.
        let least = if bench.family == TestLibrary::IntelAbi { 40 } else { 50 };
        assert!(native.text.lines().count() > least * ranks as usize, "{}", native.text);
        Ok(NativeOutput { bench, program, ranks, native, odd: None })
    }

    /// Runs with the methods of a round.
    ///
    /// # Errors
    /// It ends otherwise than without or prints something else, and not by a fault of the library.
    pub fn by(&mut self, round: &ForcedMethods, variables: &[(&str, &str)]) -> Result<(), String> {
        let words = [self.program.path.to_str().unwrap()];
        let program = TestProgram { bench: self.bench, ranks: self.ranks, words: &words };
        let force = force(round);
        let mut variables = variables.to_vec();
        variables.push(("COLIBRI_FORCE", &*force));
        let mut aside = self.native.aside.clone();
        let mut text = self.native.text.clone();
        loop {
            let with = program.attempt(true, &variables, &aside, LONGEST_SECONDS);
            let wrong = match with.is_well() {
                true => differences(&text, &stdout(&with.output)),
                false => with.ended_in.iter().cloned().collect(),
            };
            let told = format!("{} ranks, {force}: {wrong:?}", self.ranks);
            let said = || format!("{told} {}: {}", with.output.status, stderr(&with.output));
            if wrong.is_empty() && !with.is_well() {
                return Err(said());
            }
            for case in &wrong {
                let why = self.fault_of_library(&program, case, round)?;
                program.tell(case, &why.ok_or_else(said)?);
            }
            self.native.allows(aside.union(&wrong).count())?;
            if with.is_well() {
                return Ok(());
            }
            let before = aside.len();
            aside.extend(wrong);
            if aside.len() == before {
                return Err(said());
            }
            // What a case leaves in memory may be seen by those after it.
            text = program.natively(aside.clone())?.text;
        }
    }

    /// Why a case that went wrong by these methods went wrong by the library; nothing if it did not.
    fn fault_of_library(
        &mut self,
        program: &TestProgram<'_>,
        case: &str,
        round: &ForcedMethods,
    ) -> Result<Option<String>, String> {
        let method = round.iter().find(|(one, _)| Some(*one) == collective(case));
        let led = method.map(|(collective, method)| leads_to(*collective, method));
        let led = led.unwrap_or_default();
        if let Some(other) = self.native.aside.iter().find(|other| is_of(other, &led)) {
            return Ok(Some(format!("its method leads to '{other}'; wrong")));
        }
        let odd = self.odd()?;
        if odd.contains(case) {
            return Ok(Some("another library gives other data than this one by itself".into()));
        }
        if let Some(other) = odd.iter().find(|other| is_of(other, &led)) {
            return Ok(Some(format!("its method leads to '{other}', whose data is odd; wrong")));
        }
        // What it does now and then.
        for _ in 0..2 {
            let again = program.natively(self.native.aside.clone())?;
            let differs = differences(&self.native.text, &again.text).contains(case);
            if differs || again.aside.contains(case) {
                return Ok(Some("now and then by itself wrong".into()));
            }
        }
        Ok(None)
    }

    /// See the field. Codes of errors may differ between libraries; data may not.
    fn odd(&mut self) -> Result<&CaseNames, String> {
        if self.odd.is_none() {
            self.odd = Some(self.compared_with_another()?);
        }
        Ok(self.odd.get_or_insert_default())
    }

    fn compared_with_another(&self) -> Result<CaseNames, String> {
        let other = reference(self.bench.family).and_then(|family| self.bench.beside(family));
        let Some(other) = other else { return Ok(CaseNames::new()) };
        let options: Vec<&str> = self.program.options.iter().map(String::as_str).collect();
        let program = Compiled::new(&other, &self.program.source, &options);
        let Some(program) = program else { return Ok(CaseNames::new()) };
        let words = [program.path.to_str().unwrap()];
        let there = TestProgram { bench: &other, ranks: self.ranks, words: &words };
        let there = there.natively(self.native.aside.clone())?;
        let (ours, theirs) = (lines(&self.native.text), lines(&there.text));
        let is_data = |name: &str| !name.starts_with("error") && !name.starts_with("told");
        let differing = ours.into_iter().filter(|(key, hash)| {
            is_data(key.1) && theirs.get(key).is_some_and(|other| other != hash)
        });
        Ok(differing.map(|(key, _)| key.1.to_owned()).collect())
    }
}

/// Of each rank and case what was printed.
fn lines(text: &str) -> BTreeMap<(&str, &str), &str> {
    let parts = text.lines().filter_map(|line| {
        let (rank, rest) = line.split_once(' ')?;
        let (name, hash) = rest.rsplit_once(' ')?;
        Some(((rank, name), hash))
    });
    parts.collect()
}

/// Cases of which only one of the two tells, or each something else.
fn differences(one: &str, other: &str) -> CaseNames {
    let (one, other): (BTreeSet<&str>, BTreeSet<&str>) =
        (one.lines().collect(), other.lines().collect());
    let differing = one.symmetric_difference(&other).map(|line| {
        let name = line.split_once(' ').and_then(|(_, rest)| rest.rsplit_once(' '));
        name.map_or(*line, |(name, _)| name).to_owned()
    });
    differing.collect()
}
