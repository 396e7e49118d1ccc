//! What an MPI library does wrong by itself, for the test programs that start themselves under a
//! launcher: found out by its own calls alone, told, and set aside.
//!
//! Which of its algorithms a library takes depends on the processor: a fault that it has on one machine
//! alone must not fail a test of ours there. So ranks write which case they are in before they call.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::OnceLock,
};

use super::run_to_end;

/// Where ranks find what is set aside, and write where they are.
const FOLDER: &str = "COLIBRI_RUNNER_TEST_CASES";
/// Set where only the library's own calls are made.
const NATIVELY: &str = "COLIBRI_RUNNER_TEST_NATIVELY";
/// Set to show what happens where the library crashes: the case in which it does.
const CRASHES: &str = "COLIBRI_RUNNER_TEST_CRASHES";
/// At most one case in so many is set aside.
const SHARE: usize = 8;

type CaseNames = BTreeSet<String>;

struct Rank {
    folder: PathBuf,
    aside: CaseNames,
    begun: CaseNames,
}

thread_local! {
    static RANK: RefCell<Option<Rank>> = const { RefCell::new(None) };
}

/// Whether only the library's own calls are to be made.
pub fn is_native() -> bool {
    env::var_os(NATIVELY).is_some()
}

/// Whether a case is to be called, in which the calling thread then is. The same on all ranks.
pub fn begins(case: &str) -> bool {
    let Some(folder) = env::var_os(FOLDER) else { return true };
    let is_begun = RANK.with_borrow_mut(|rank| {
        let rank = rank.get_or_insert_with(|| {
            let folder = PathBuf::from(folder);
            let aside = set_aside(&folder);
            Rank { folder, aside, begun: CaseNames::new() }
        });
        if rank.aside.contains(case) {
            return false;
        }
        rank.begun.insert(case.into());
        let text = format!("{} {case}", rank.begun.len());
        fs::write(rank.folder.join(process::id().to_string()), text).unwrap();
        true
    });
    if is_begun && env::var(CRASHES).is_ok_and(|crashes| crashes == case) {
        process::abort();
    }
    is_begun
}

/// Whether any case that is set aside is such a one.
#[allow(dead_code, reason = "each test program uses its part of this module")]
pub fn is_in(is_such: impl Fn(&str) -> bool) -> bool {
    static ASIDE: OnceLock<CaseNames> = OnceLock::new();
    let aside = ASIDE.get_or_init(|| match env::var_os(FOLDER) {
        Some(folder) => set_aside(Path::new(&folder)),
        None => CaseNames::new(),
    });
    aside.iter().any(|case| is_such(case))
}

fn set_aside(folder: &Path) -> CaseNames {
    let names = fs::read_to_string(folder.join("aside")).unwrap();
    names.lines().map(String::from).collect()
}

/// Runs a launcher to its end; what the library fails in by itself is set aside, and given.
///
/// # Errors
/// It fails where the library alone does not, or in too many cases.
pub fn run_setting_aside(command: impl Fn() -> Command) -> Result<CaseNames, String> {
    let folder = env::temp_dir().join(format!("colibri-cases-{}", process::id()));
    let outcome = find_out(&command, &folder);
    let _ = fs::remove_dir_all(&folder);
    outcome
}

fn find_out(command: &impl Fn() -> Command, folder: &Path) -> Result<CaseNames, String> {
    let mut aside = CaseNames::new();
    let run = |aside: &CaseNames, natively: bool| {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir(folder).unwrap();
        let names: String = aside.iter().map(|name| format!("{name}\n")).collect();
        fs::write(folder.join("aside"), names).unwrap();
        let mut command = command();
        if natively {
            command.env(NATIVELY, "1");
        }
        run_to_end(command.env(FOLDER, folder))
    };
    let Err(first) = run(&aside, false) else { return Ok(aside) };
    while let Err(problem) = run(&aside, true) {
        let Some((number, case)) = least_far(folder) else {
            return Err(format!("the library by itself, in no case: {problem}"));
        };
        println!("the library by itself fails in '{case}': set aside");
        aside.insert(case);
        if aside.len() > (number + aside.len()).div_ceil(SHARE) {
            return Err(format!("{aside:?} are too many to set aside: {problem}"));
        }
    }
    match aside.is_empty() {
        true => Err(first),
        false => run(&aside, false).map(|()| aside),
    }
}

/// How many cases the rank which is least far has begun, and the last of them: the others wait for it.
fn least_far(folder: &Path) -> Option<(usize, String)> {
    let states = fs::read_dir(folder).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).ok().filter(|_| !path.ends_with("aside"))?;
        let (number, case) = text.split_once(' ')?;
        Some((number.parse().ok()?, case.to_owned()))
    });
    states.min()
}

/// With a crash put in by hand, on some ranks: that case alone is set aside, and the rest holds.
pub fn show(command: impl Fn() -> Command, case: &str) {
    let outcome = run_setting_aside(|| {
        let mut command = command();
        command.env(CRASHES, case);
        command
    });
    assert_eq!(outcome, Ok(CaseNames::from([case.to_owned()])));
}
