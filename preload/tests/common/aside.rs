//! What a library does wrong by itself: found out without `libcolibri.so`, told, and set aside.
//!
//! Which of its algorithms a library takes, and by which instructions, depends on the processor. A
//! fault that it has on one machine alone must not make a test of ours fail there, and what it spoils
//! must not make another pass. So programs name each case before they begin it (`cases.c`): where the
//! library fails natively, that case alone is set aside, and all others still count.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use records::Collective;

use super::{LONGEST_SECONDS, TestFolder, TestLibrary, stderr, stdout};

/// Of a program's cases at most one in so many is set aside: a harness that is broken itself must not
/// pass.
const SHARE: usize = 8;

/// Ends `timeout` when the time is over.
const TIME_IS_OVER: i32 = 124;

/// Names of cases.
pub type CaseNames = BTreeSet<String>;

/// A method for each collective.
pub type ForcedMethods = Vec<(Collective, String)>;

/// `COLIBRI_FORCE` for a round.
pub fn force(round: &ForcedMethods) -> String {
    let each: Vec<String> =
        round.iter().map(|(collective, name)| format!("{collective}={name}")).collect();
    each.join(";")
}

/// What became of one run.
pub struct Attempt {
    pub output: Output,
    /// Where it ended before its end; nothing if that was in no case.
    pub ended_in: Option<String>,
    begun: CaseNames,
}

impl Attempt {
    pub fn is_well(&self) -> bool {
        self.output.status.success()
    }

    /// How it failed.
    pub fn how(&self) -> &'static str {
        match self.output.status.code() {
            Some(TIME_IS_OVER) => "hangs",
            _ => "fails",
        }
    }
}

/// What a program does without `libcolibri.so`.
pub struct NativeRun {
    pub aside: CaseNames,
    /// Everything that it printed.
    pub text: String,
    cases: usize,
}

impl NativeRun {
    /// # Errors
    /// So many cases in all are too many to set aside.
    pub fn allows(&self, aside: usize) -> Result<(), String> {
        match aside <= self.cases.div_ceil(SHARE) {
            true => Ok(()),
            false => Err(format!("{aside} of {} cases would be set aside", self.cases)),
        }
    }
}

/// One program on so many ranks; the words after its path are its arguments.
pub struct TestProgram<'a> {
    pub bench: &'a TestFolder,
    pub ranks: u32,
    pub words: &'a [&'a str],
}

impl TestProgram<'_> {
    /// One run with `libcolibri.so` or without.
    pub fn attempt(
        &self,
        preload: bool,
        variables: &[(&str, &str)],
        aside: &CaseNames,
        longest_seconds: u32,
    ) -> Attempt {
        let folder = self.bench.folder.path().join("cases");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let names: String = aside.iter().map(|name| format!("{name}\n")).collect();
        fs::write(folder.join("aside"), names).unwrap();
        let mut variables = variables.to_vec();
        variables.push(("CASES", folder.to_str().unwrap()));
        let bench = self.bench;
        let output = bench.run_within(longest_seconds, self.ranks, preload, &variables, self.words);
        let ended_in = (!output.status.success()).then(|| blamed(&folder)).flatten();
        Attempt { output, ended_in, begun: begun(&folder) }
    }

    /// Runs without `libcolibri.so` until it ends well, each time without the case in which it did not.
    ///
    /// # Errors
    /// The library fails in no case, in one that is set aside already, or in too many.
    pub fn natively(&self, mut aside: CaseNames) -> Result<NativeRun, String> {
        let mut cases = CaseNames::new();
        loop {
            let attempt = self.attempt(false, &[], &aside, self.bench.longest_natively_seconds);
            cases.extend(attempt.begun.iter().chain(&aside).cloned());
            let text = stdout(&attempt.output);
            let native = NativeRun { aside: aside.clone(), text, cases: cases.len() };
            if attempt.is_well() {
                return Ok(native);
            }
            let (family, said) = (self.bench.family, stderr(&attempt.output));
            let Some(case) = &attempt.ended_in else {
                return Err(format!("{family:?} by itself {} in no case: {said}", attempt.how()));
            };
            self.tell(case, &format!("{} by itself", attempt.how()));
            if !aside.insert(case.clone()) {
                return Err(format!("'{case}' was set aside and is called: {said}"));
            }
            // Not all cases were reached, so that the share is judged by those that were.
            native.allows(aside.len()).map_err(|why| format!("{family:?}: {why}"))?;
        }
    }

    /// Runs a program that checks what it gets, with these methods: so the library alone is asked only where
    /// that was wrong.
    ///
    /// # Errors
    /// It fails, and not by a fault of the library; or the library has too many.
    pub fn holds(&self, round: &ForcedMethods, variables: &[(&str, &str)]) -> Result<(), String> {
        let force = force(round);
        let mut variables = variables.to_vec();
        variables.push(("COLIBRI_FORCE", &*force));
        let with = |aside: &CaseNames| self.attempt(true, &variables, aside, LONGEST_SECONDS);
        let first = with(&CaseNames::new());
        if first.is_well() {
            return Ok(());
        }
        let native = self.natively(CaseNames::new())?;
        let again = if native.aside.is_empty() { first } else { with(&native.aside) };
        match again.is_well() {
            true => Ok(()),
            false => {
                let (case, why) = (again.ended_in, stderr(&again.output));
                Err(format!("{force}: {case:?}: {why}"))
            }
        }
    }

    /// For whoever reads the test's output.
    pub fn tell(&self, case: &str, why: &str) {
        let TestProgram { bench, ranks, .. } = self;
        println!("{:?}, {ranks} ranks: {why} in '{case}': set aside", bench.family);
    }
}

/// The case to set aside after a failure: that of a process that crashed or found its data wrong, else
/// that of the process which is least far, for which the others wait.
fn blamed(folder: &Path) -> Option<String> {
    let states = files(folder, "now").into_iter().filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        let mut words = text.trim_end().splitn(3, ' ');
        let (state, number, name) = (words.next()?, words.next()?, words.next()?);
        Some((state != "c", number.parse::<u64>().ok()?, name.to_owned()))
    });
    states.min().map(|(_, _, name)| name)
}

fn begun(folder: &Path) -> CaseNames {
    let texts = files(folder, "begun").into_iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.flat_map(|text| text.lines().map(String::from).collect::<Vec<_>>()).collect()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|one| one == extension)).collect()
}

/// The collective that a case is named after.
pub fn collective(case: &str) -> Option<Collective> {
    case.split([' ', ':']).find_map(|word| word.parse().ok())
}

/// Functions of the library that a method calls, of which there are cases by themselves.
pub fn leads_to(collective: Collective, method: &str) -> Vec<&'static str> {
    const NAMES: [&str; 15] = [
        "reduce_scatter_block",
        "reduce_scatter",
        "reduce_local",
        "allgatherv",
        "allgather",
        "allreduce",
        "alltoallv",
        "alltoall",
        "gatherv",
        "gather",
        "scatterv",
        "scatter",
        "exscan",
        "reduce",
        "bcast",
    ];
    let Some((_, inner)) = method.split_once("_as_") else {
        let combines = collective.name().contains("reduce") || collective.name().contains("scan");
        return if combines { vec!["reduce_local"] } else { Vec::new() };
    };
    let mut rest = inner;
    let mut found = Vec::new();
    while !rest.is_empty() {
        match NAMES.iter().find(|name| rest.starts_with(*name)) {
            Some(name) => {
                found.push(*name);
                rest = &rest[name.len()..];
            }
            // `_`, and words such as `then`.
            None => rest = &rest[1..],
        }
    }
    found
}

/// Whether a case is named after one of these functions.
pub fn is_of(case: &str, functions: &[&str]) -> bool {
    case.split([' ', ':']).any(|word| functions.contains(&word))
}

/// The library by whose data another's is judged: made from the same sources, its programs call the same
/// cases.
pub fn reference(family: TestLibrary) -> Option<TestLibrary> {
    match family {
        TestLibrary::OpenMpi5 => Some(TestLibrary::OpenMpi),
        TestLibrary::Mpich5
        | TestLibrary::Mpich5Abi
        | TestLibrary::Intel
        | TestLibrary::IntelAbi => Some(TestLibrary::Mpich),
        TestLibrary::OpenMpi | TestLibrary::Mpich => None,
    }
}
