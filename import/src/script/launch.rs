//! What a line that starts ranks tells of them.

use super::{
    granted::{Granted, StartedRanks},
    launch_options::LaunchOptions,
    launchers::{LauncherProgram, launcher_of},
    variables::{Variables, assignment, whole},
};

/// Programs before a launcher that only carry it out, and what they are told.
const CARRYING: [&str; 14] = [
    "time", "exec", "nohup", "env", "timeout", "stdbuf", "nice", "ionice", "taskset", "numactl",
    "command", "perf", "strace", "eval",
];
/// Programs that name a launcher and start none.
const NAMING: [&str; 28] = [
    "echo", "printf", "which", "type", "hash", "module", "ml", "alias", "unalias", "man", "ls",
    "ll", "cat", "grep", "sed", "awk", "[", "[[", "test", "rm", "cp", "mv", "ln", "source", ".",
    "ldd", "file", "readlink",
];
/// Programs that may be started by a launcher and print no benchmark.
const SYSTEM: [&str; 20] = [
    "hostname",
    "date",
    "uname",
    "lscpu",
    "lstopo",
    "lstopo-no-graphics",
    "env",
    "printenv",
    "nvidia-smi",
    "rocm-smi",
    "free",
    "uptime",
    "echo",
    "true",
    "sleep",
    "ls",
    "sync",
    "mkdir",
    "rm",
    "cp",
];
/// What a launcher is asked without starting anything.
const ASKING: [&str; 6] = ["--version", "-version", "-V", "--help", "-help", "-h"];
/// How the names of benchmarks begin.
const BENCHMARKS: [&str; 3] = ["osu_", "IMB-", "mpibenchmark"];

/// The words of a shell that stand before a command.
pub fn without_keywords(words: &[String]) -> &[String] {
    const KEYWORDS: [&str; 9] = ["do", "then", "else", "elif", "if", "while", "until", "!", "{"];
    let is_keyword = |word: &&String| KEYWORDS.contains(&word.as_str());
    &words[words.iter().take_while(is_keyword).count()..]
}

/// The ranks that a command starts: nothing where it starts none.
///
/// # Errors
/// It may start ranks, but how many is not understood; why.
pub fn started(
    words: &[String],
    granted: &Granted,
    variables: &Variables,
) -> Option<Result<StartedRanks, String>> {
    let words = without_keywords(words);
    let assigned = words.iter().take_while(|word| assignment(word).is_some()).count();
    let (set, words) = words.split_at(assigned);
    let first = words.first()?;
    let name = basename(first);
    if let Some(script) = other_script(words) {
        return Some(Err(format!("what {} starts is not followed", records::quoted(script))));
    }
    if only_names(words) {
        return None;
    }
    if let Some(variable) = whole(first).or_else(|| first.starts_with("$()").then_some("")) {
        let is_benchmark =
            |word: &String| BENCHMARKS.iter().any(|it| basename(word).starts_with(it));
        let name = variable.to_ascii_lowercase();
        let may_launch = ["run", "mpi", "launch", "exec"].iter().any(|part| name.contains(part))
            || words.iter().any(is_benchmark);
        return may_launch.then(|| Err(variables.why_unknown_in(first)));
    }
    // `bash -c "mpirun ..."`
    let holds_launcher =
        |word: &&String| word.contains(char::is_whitespace) && names_launcher(word);
    let place = words.iter().position(|word| launcher_of(word).is_some());
    let Some(place) = place else {
        let quoted = words.iter().find(holds_launcher)?;
        return Some(Err(format!("what runs {} is not known", records::quoted(quoted))));
    };
    if place > 0 && !CARRYING.contains(&name) {
        return Some(Err(format!("what '{name}' does with a launcher is not known")));
    }
    if let Some(word) = set.iter().find(|word| word.starts_with("SLURM_")) {
        return Some(Err(format!("what {} does is not followed", records::quoted(word))));
    }
    let Some(launcher) = launcher_of(&words[place]).flatten() else {
        return Some(Err(format!("the options of '{}' are not known", basename(&words[place]))));
    };
    of_launcher(launcher, &words[place + 1..], granted, variables)
}

/// Whether a command starts nothing of what its words name.
pub fn only_names(words: &[String]) -> bool {
    let Some(name) = words.first().map(|first| basename(first)) else { return false };
    NAMING.contains(&name)
        || (name == "command" && words.get(1).is_some_and(|word| word == "-v" || word == "-V"))
}

/// Another script that a command runs, if its name says that it may start ranks.
fn other_script(words: &[String]) -> Option<&str> {
    let is_carrying = |word: &&String| CARRYING.contains(&basename(word));
    let carried = &words[words.iter().take_while(is_carrying).count()..];
    let [first, rest @ ..] = carried else { return None };
    let script = match basename(first) {
        "bash" | "sh" | "zsh" | "ksh" | "source" | "." => {
            rest.iter().find(|word| !word.starts_with('-'))?
        }
        name if name.ends_with(".sh") => first,
        _ => return None,
    };
    let name = basename(script).to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    (has(&["run", "mpi", "launch", "exec", "bench", "osu", "imb", "sweep", "job"])
        && !has(&["env", "var", "setup", "module", "config", "compile", "build", "install"])
        && !name.contains(char::is_whitespace))
    .then_some(script)
}

/// The ranks that a line of a log says are started: it is the command that made the output, say.
pub fn launched_ranks(line: &str) -> Option<u32> {
    let words = Some(line).filter(|line| names_launcher(line)).and_then(shlex::split)?;
    // Behind a prompt, or what `set -x` writes before a command.
    let place = words.iter().position(|word| launcher_of(word).is_some())?;
    let nobody = (Granted::default(), Variables::default());
    Some(started(&words[place..], &nobody.0, &nobody.1)?.ok()?.ranks)
}

/// Whether a text names a launcher among its words.
pub fn names_launcher(text: &str) -> bool {
    text.split_whitespace().any(|word| launcher_of(word).is_some())
}

fn basename(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn of_launcher(
    launcher: &LauncherProgram,
    words: &[String],
    granted: &Granted,
    variables: &Variables,
) -> Option<Result<StartedRanks, String>> {
    let words = match launcher.names.contains(&"flux") {
        false => words,
        // Its subcommands: run alone writes what ranks write.
        true => match words.iter().map(String::as_str).take(2).collect::<Vec<_>>()[..] {
            ["run", ..] => &words[1..],
            ["mini", "run"] => &words[2..],
            ["batch" | "alloc" | "submit" | "bulksubmit" | "start" | "proxy" | "mini", ..] => {
                return Some(Err("of flux only 'flux run' is understood".into()));
            }
            _ => return None,
        },
    };
    if words.first().is_some_and(|word| ASKING.contains(&word.as_str())) {
        return None;
    }
    let is_colon = |word: &String| word == ":";
    if !words.iter().any(is_colon) {
        let options = match LaunchOptions::read(launcher, words, variables) {
            Ok(options) => options,
            Err(why) => return Some(Err(why)),
        };
        return match &options.program {
            Some(program) if SYSTEM.contains(&basename(program)) => None,
            Some(program) if launcher_of(program).is_some() => {
                Some(Err("one launcher starts another".into()))
            }
            _ => Some(options.started(launcher, granted)),
        };
    }
    if !launcher.colons {
        return Some(Err("it starts several programs (:)".into()));
    }
    // Programs that run together are one world: their ranks add up where each is told its own.
    let each = words.split(is_colon).map(|words| {
        let options = LaunchOptions::read(launcher, words, variables)?;
        options
            .ranks
            .ok_or_else(|| "the number of ranks of each program (:) is not given".to_owned())
    });
    let sum = each.collect::<Result<Vec<u32>, String>>().and_then(|each| {
        let sum = each.iter().try_fold(0_u32, |sum, ranks| sum.checked_add(*ranks));
        sum.ok_or_else(|| "it starts more ranks than a number can tell".to_owned())
    });
    Some(sum.map(|ranks| StartedRanks { ranks, layout: None }))
}
