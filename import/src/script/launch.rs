//! What a line that starts ranks tells of them.

use super::{
    granted::{Granted, StartedRanks},
    launchers::{DefaultRanks, Launcher, OptionEffect, launcher_of},
    variables::{Variables, assignment, first_in, whole},
};
use crate::rows::RanksOnNodes;

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
    let names = NAMING.contains(&name)
        || (name == "command" && words.get(1).is_some_and(|word| word == "-v" || word == "-V"));
    if names {
        return None;
    }
    if let Some(variable) = whole(first).or_else(|| first.starts_with("$()").then_some("")) {
        let is_benchmark =
            |word: &String| BENCHMARKS.iter().any(|it| basename(word).starts_with(it));
        let told = variable.to_ascii_lowercase();
        let may_launch = ["run", "mpi", "launch", "exec"].iter().any(|part| told.contains(part))
            || words.iter().any(is_benchmark);
        return may_launch.then(|| Err(unknown(first, variables)));
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

/// Whether a text names a launcher among its words.
pub fn names_launcher(text: &str) -> bool {
    text.split_whitespace().any(|word| launcher_of(word).is_some())
}

fn basename(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Why what a word stands for is not known.
fn unknown(word: &str, variables: &Variables) -> String {
    match first_in(word) {
        Some(name) => variables.why_unknown(name),
        None => "what another command tells is known only when the script runs".to_owned(),
    }
}

fn of_launcher(
    launcher: &Launcher,
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
        let told = match LaunchOptions::read(launcher, words, variables) {
            Ok(told) => told,
            Err(why) => return Some(Err(why)),
        };
        return match &told.program {
            Some(program) if SYSTEM.contains(&basename(program)) => None,
            Some(program) if launcher_of(program).is_some() => {
                Some(Err("one launcher starts another".into()))
            }
            _ => Some(told.started(launcher, granted)),
        };
    }
    if !launcher.colons {
        return Some(Err("it starts several programs (:)".into()));
    }
    // Programs that run together are one world: their ranks add up where each is told its own.
    let each = words.split(is_colon).map(|words| {
        let told = LaunchOptions::read(launcher, words, variables)?;
        told.ranks
            .ok_or_else(|| "how many ranks each of its programs (:) has is not told".to_owned())
    });
    let sum = each.collect::<Result<Vec<u32>, String>>().and_then(|each| {
        let sum = each.iter().try_fold(0_u32, |sum, ranks| sum.checked_add(*ranks));
        sum.ok_or_else(|| "it starts more ranks than a number can tell".to_owned())
    });
    Some(sum.map(|ranks| StartedRanks { ranks, layout: None }))
}

/// What a launcher was told.
#[derive(Debug, Default)]
struct LaunchOptions {
    ranks: Option<u32>,
    per_node: Option<u32>,
    nodes: Option<u32>,
    sets: Option<u32>,
    per_set: Option<u32>,
    /// An option on which it rests where ranks run, and how many where nothing else tells it.
    placed: Option<String>,
    /// Whether it is told in which order ranks run on nodes.
    ordered: bool,
    program: Option<String>,
}

/// Ways to put ranks that leave their number and the order of nodes as they are.
const BY_NODE_IN_TURN: [&str; 5] = ["slot", "core", "socket", "package", "numa"];

/// Parts of the names of Open MPI's parameters that do what its options of placement do.
const PLACING: [&str; 3] = ["rmaps", "hostfile", "ppr"];

/// Keeps a number that may be told once, or twice the same.
fn once(kept: &mut Option<u32>, number: u32, name: &str) -> Result<(), String> {
    match *kept {
        Some(before) if before != number => Err(format!("its option '{name}' is given twice")),
        _ => {
            *kept = Some(number);
            Ok(())
        }
    }
}

impl LaunchOptions {
    fn read(launcher: &Launcher, words: &[String], variables: &Variables) -> Result<Self, String> {
        let mut told = LaunchOptions::default();
        let mut rest = words;
        while let [word, after @ ..] = rest {
            rest = after;
            let is_unknown = whole(word).is_some() || word.starts_with("$()");
            if word == "--" || is_unknown || !word.starts_with('-') || word == "-" {
                // What is not known may hold options where something follows that may be the program.
                if is_unknown && !rest.is_empty() {
                    return Err(unknown(word, variables));
                }
                told.program =
                    if word == "--" { rest.first().cloned() } else { Some(word.clone()) };
                break;
            }
            told.option(launcher, word, &mut rest, variables)?;
        }
        Ok(told)
    }

    /// Takes in an option, with its values from the words behind it.
    fn option(
        &mut self,
        launcher: &Launcher,
        word: &str,
        rest: &mut &[String],
        variables: &Variables,
    ) -> Result<(), String> {
        let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or(word);
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        if let Some(effect) = launcher.effect(name) {
            return self.apply(effect, name, value, rest, variables);
        }
        let mut letters = if launcher.attached && !word.starts_with("--") { bare } else { "" };
        while let Some(letter) = letters.chars().next() {
            let (name, after) = letters.split_at(letter.len_utf8());
            let Some(effect) = launcher.effect(name) else { break };
            let value = Some(after).filter(|after| !after.is_empty());
            if values(effect) > 0 {
                return self.apply(effect, name, value, rest, variables);
            }
            self.apply(effect, name, None, rest, variables)?;
            // A flag may have a number behind it: `-K1`.
            if after.bytes().all(|byte| byte.is_ascii_digit()) {
                return Ok(());
            }
            letters = after;
        }
        Err(format!("its option {} is not known", records::quoted(word)))
    }

    fn apply(
        &mut self,
        effect: OptionEffect,
        name: &str,
        value: Option<&str>,
        rest: &mut &[String],
        variables: &Variables,
    ) -> Result<(), String> {
        let wanted = values(effect);
        let separate = if value.is_some() { 0 } else { wanted };
        let Some((taken, after)) = rest.split_at_checked(separate) else {
            return Err(format!("its option '{name}' has no value"));
        };
        *rest = after;
        let value = value.or_else(|| taken.last().map(String::as_str)).unwrap_or_default();
        let number = || match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ if value.contains('$') => Err(unknown(value, variables)),
            _ => {
                let value = records::quoted(value);
                Err(format!("its option '{name}' is {value}; expected a number of 1 or more"))
            }
        };
        match effect {
            OptionEffect::None(_) => Ok(()),
            OptionEffect::Ranks => once(&mut self.ranks, number()?, name),
            OptionEffect::RanksPerNode => once(&mut self.per_node, number()?, name),
            OptionEffect::OneRankPerNode => once(&mut self.per_node, 1, name),
            OptionEffect::ResourceSets => once(&mut self.sets, number()?, name),
            OptionEffect::RanksPerSet => once(&mut self.per_set, number()?, name),
            OptionEffect::Nodes => match number() {
                Ok(number) => once(&mut self.nodes, number, name),
                Err(_) => self.placed_by(name),
            },
            OptionEffect::MapBy => self.map_by(name, value),
            OptionEffect::Parameter => match taken.first() {
                Some(key) if PLACING.iter().any(|part| key.contains(part)) => self.placed_by(key),
                _ => Ok(()),
            },
            OptionEffect::Order(_) => {
                self.ordered = true;
                Ok(())
            }
            OptionEffect::Placement(_) => self.placed_by(name),
            OptionEffect::NotFollowed => {
                Err(format!("what its option '{name}' does is not followed"))
            }
        }
    }

    fn map_by(&mut self, name: &str, value: &str) -> Result<(), String> {
        match value.split(':').collect::<Vec<_>>()[..] {
            ["ppr", number, "node", ..] => match number.parse() {
                Ok(number @ 1..) => once(&mut self.per_node, number, name),
                _ => Err(format!("its option '{name}' is {}", records::quoted(value))),
            },
            [by] if BY_NODE_IN_TURN.contains(&by) => Ok(()),
            ["node"] => {
                self.ordered = true;
                Ok(())
            }
            _ => self.placed_by(name),
        }
    }

    fn placed_by(&mut self, name: &str) -> Result<(), String> {
        self.placed = Some(name.to_owned());
        Ok(())
    }

    /// The ranks, as they follow from what was told and from what the batch system was asked for.
    fn started(&self, launcher: &Launcher, granted: &Granted) -> Result<StartedRanks, String> {
        let StartedRanks { ranks, layout } = self.started_in_order(launcher, granted)?;
        Ok(StartedRanks { ranks, layout: layout.filter(|_| !self.ordered) })
    }

    fn started_in_order(
        &self,
        launcher: &Launcher,
        granted: &Granted,
    ) -> Result<StartedRanks, String> {
        let in_sets = self.sets.zip(self.per_set).map(|(sets, each)| sets.checked_mul(each));
        if let Some(ranks) = self.ranks.or(in_sets.flatten()) {
            let granted = Some(granted).filter(|_| launcher.without != DefaultRanks::MustBeTold);
            let layout = self.layout_of(ranks, granted, launcher.without == DefaultRanks::Srun);
            return Ok(StartedRanks { ranks, layout });
        }
        if launcher.without == DefaultRanks::MustBeTold && self.nodes.is_none() {
            return Err("how many ranks there are is not told".into());
        }
        if let Some(name) = &self.placed {
            return Err(format!("how many ranks there are with its option '{name}' is not told"));
        }
        let layout = match launcher.without {
            DefaultRanks::Srun => return self.started_by_srun(granted),
            DefaultRanks::MustBeTold => self.nodes.zip(self.per_node),
            DefaultRanks::Granted => match self.per_node {
                None => return granted.started(),
                Some(each) => granted.nodes()?.map(|nodes| (nodes, each)),
            },
        };
        let (nodes, each) = layout.ok_or("on how many nodes it runs is not told")?;
        of_layout(nodes, each)
    }

    /// Where so many ranks run, as far as that is sure: `srun` follows what it is told of nodes only where the job
    /// has the room.
    fn layout_of(
        &self,
        ranks: u32,
        granted: Option<&Granted>,
        needs_room: bool,
    ) -> Option<RanksOnNodes> {
        if self.placed.is_some() {
            return None;
        }
        let of_granted = granted.and_then(Granted::layout).filter(|layout| {
            layout.procs() == ranks
                && self.nodes.is_none_or(|nodes| nodes == layout.nodes)
                && self.per_node.is_none_or(|each| each == layout.ranks_per_node)
        });
        let each = self.per_node.filter(|each| ranks.is_multiple_of(*each));
        let told = each.and_then(|each| RanksOnNodes::new(ranks / each, each).ok());
        let has_room = |told: &RanksOnNodes| {
            granted.and_then(Granted::layout).is_some_and(|room| {
                room.nodes == told.nodes && room.ranks_per_node >= told.ranks_per_node
            })
        };
        let told = told.filter(|told| self.nodes.is_none_or(|nodes| nodes == told.nodes));
        of_granted.or(told.filter(|told| !needs_room || has_room(told)))
    }

    /// Seen with Slurm 22.05: what the job was asked for counts before what a step is told of nodes; where no ranks
    /// were asked for, there is one on each node.
    fn started_by_srun(&self, granted: &Granted) -> Result<StartedRanks, String> {
        if let Ok(all) = granted.started() {
            let nodes = granted.nodes()?;
            let is_same = self.nodes.is_none_or(|told| nodes == Some(told))
                && self.per_node.is_none_or(|told| granted.per_node() == Some(told));
            return match is_same {
                true => Ok(all),
                false => Err("how many ranks a part of the job's nodes has without '-n' differs between versions of \
                              Slurm"
                    .into()),
            };
        }
        let nodes = self.nodes.or(granted.nodes()?);
        match (nodes, self.per_node) {
            (Some(nodes), Some(each)) => of_layout(nodes, each),
            (Some(nodes), None) if granted.has_one_on_each_node() => of_layout(nodes, 1),
            _ => granted.started(),
        }
    }
}

fn of_layout(nodes: u32, each: u32) -> Result<StartedRanks, String> {
    let layout = RanksOnNodes::new(nodes, each)?;
    Ok(StartedRanks { ranks: layout.procs(), layout: Some(layout) })
}

/// How many values an option takes.
const fn values(effect: OptionEffect) -> usize {
    match effect {
        OptionEffect::None(values)
        | OptionEffect::Order(values)
        | OptionEffect::Placement(values) => values,
        OptionEffect::OneRankPerNode => 0,
        OptionEffect::Parameter => 2,
        OptionEffect::Ranks
        | OptionEffect::RanksPerNode
        | OptionEffect::Nodes
        | OptionEffect::MapBy
        | OptionEffect::ResourceSets
        | OptionEffect::RanksPerSet
        | OptionEffect::NotFollowed => 1,
    }
}
