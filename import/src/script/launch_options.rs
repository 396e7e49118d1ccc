//! The options of a line that starts ranks, and how many ranks follow from them.

use records::{Layout, RankPlacement};

use super::{
    granted::{Granted, StartedRanks},
    launchers::{DefaultRanks, LauncherProgram, OptionEffect},
    variables::{Variables, whole},
};

/// What a launcher was told.
#[derive(Debug, Default)]
pub struct LaunchOptions {
    /// Ranks in all.
    pub ranks: Option<u32>,
    per_node: Option<u32>,
    nodes: Option<u32>,
    sets: Option<u32>,
    per_set: Option<u32>,
    /// An option on which it rests where ranks run, and how many where nothing else tells it.
    placed: Option<String>,
    /// Whether it is told in which order ranks run on nodes.
    ordered: bool,
    /// Whether it is told what each rank has.
    shared: bool,
    /// Whether the number of nodes is told, but not known.
    has_unknown_nodes: bool,
    /// What it starts.
    pub program: Option<String>,
}

/// Ways to put ranks that leave their number and the order of nodes as they are.
const BY_NODE_IN_TURN: [&str; 5] = ["slot", "core", "socket", "package", "numa"];

/// Parts of the names of Open MPI's parameters that do what its options of placement do.
const PLACING_PARAMETERS: [&str; 3] = ["rmaps", "hostfile", "ppr"];

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
    /// # Errors
    /// One is not understood; why.
    pub fn read(
        launcher: &LauncherProgram,
        words: &[String],
        variables: &Variables,
    ) -> Result<Self, String> {
        let mut options = LaunchOptions::default();
        let mut rest = words;
        while let [word, after @ ..] = rest {
            rest = after;
            let is_unknown = whole(word).is_some() || word.starts_with("$()");
            if word == "--" || is_unknown || !word.starts_with('-') || word == "-" {
                // What is not known may hold options where something follows that may be the program.
                if is_unknown && !rest.is_empty() {
                    return Err(variables.why_unknown_in(word));
                }
                // Then an option before it was read with too few values, or too many.
                if word.parse::<f64>().is_ok() {
                    return Err(format!("'{word}' is no program"));
                }
                options.program =
                    if word == "--" { rest.first().cloned() } else { Some(word.clone()) };
                break;
            }
            options.option(launcher, word, &mut rest, variables)?;
        }
        Ok(options)
    }

    /// Takes in an option, with its values from the words behind it.
    fn option(
        &mut self,
        launcher: &LauncherProgram,
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
        let wanted = match values(effect) {
            // Hydra's `-genv NAME=TEXT` for `-genv NAME TEXT`.
            2 if rest.first().is_some_and(|next| next.contains('=')) => 1,
            wanted => wanted,
        };
        let separate = if value.is_some() { 0 } else { wanted };
        let Some((taken, after)) = rest.split_at_checked(separate) else {
            return Err(format!("its option '{name}' has no value"));
        };
        *rest = after;
        let value = value.or_else(|| taken.last().map(String::as_str)).unwrap_or_default();
        let number = || match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ if value.contains('$') => Err(variables.why_unknown_in(value)),
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
                Err(_) => {
                    self.has_unknown_nodes = true;
                    self.placed_by(name)
                }
            },
            OptionEffect::MapBy => self.map_by(name, value),
            OptionEffect::Parameter => match taken.first() {
                Some(key) if PLACING_PARAMETERS.iter().any(|part| key.contains(part)) => {
                    self.placed_by(key)
                }
                _ => Ok(()),
            },
            OptionEffect::Order(_) => {
                self.ordered = true;
                Ok(())
            }
            OptionEffect::Share(_) => {
                self.shared = true;
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
    ///
    /// # Errors
    /// They do not; why.
    pub fn started(
        &self,
        launcher: &LauncherProgram,
        granted: &Granted,
    ) -> Result<StartedRanks, String> {
        let StartedRanks { ranks, layout } = self.started_in_order(launcher, granted)?;
        Ok(StartedRanks { ranks, layout: layout.filter(|_| !self.ordered) })
    }

    fn started_in_order(
        &self,
        launcher: &LauncherProgram,
        granted: &Granted,
    ) -> Result<StartedRanks, String> {
        let in_sets = self.sets.zip(self.per_set).map(|(sets, each)| sets.checked_mul(each));
        if let Some(ranks) = self.ranks.or(in_sets.flatten()) {
            let granted = Some(granted).filter(|_| launcher.without != DefaultRanks::MustBeTold);
            let layout = self.layout_of(ranks, granted, launcher.without == DefaultRanks::Srun);
            return Ok(StartedRanks { ranks, layout });
        }
        if launcher.without == DefaultRanks::MustBeTold && self.nodes.is_none() {
            return Err("the number of ranks is not given".into());
        }
        if launcher.without == DefaultRanks::Srun {
            return self.started_by_srun(granted);
        }
        self.check_placement()?;
        let layout = match launcher.without {
            DefaultRanks::Srun => None,
            DefaultRanks::MustBeTold => self.nodes.zip(self.per_node),
            DefaultRanks::Granted => match self.per_node {
                None => return granted.started(),
                Some(each) => granted.nodes()?.map(|nodes| (nodes, each)),
            },
        };
        let (nodes, each) = layout.ok_or("the number of nodes is not given")?;
        of_layout(nodes, each)
    }

    /// Nothing where no option may change the number of ranks.
    fn check_placement(&self) -> Result<(), String> {
        match &self.placed {
            Some(name) => Err(format!("its option '{name}' leaves the number of ranks open")),
            None => Ok(()),
        }
    }

    /// Where so many ranks run, as far as that is sure: `srun` follows what it is told of nodes only where the job
    /// has the room.
    fn layout_of(&self, ranks: u32, granted: Option<&Granted>, needs_room: bool) -> Option<Layout> {
        if self.placed.is_some() {
            return None;
        }
        let of_granted = granted.and_then(Granted::layout).filter(|layout| {
            layout.procs() == ranks
                && self.nodes.is_none_or(|nodes| nodes == layout.nodes())
                && self.per_node.is_none_or(|each| each == layout.max_per_node())
        });
        let each = self.per_node.filter(|each| ranks.is_multiple_of(*each));
        let by_options =
            each.and_then(|each| Layout::even(ranks / each, each, RankPlacement::Block).ok());
        let has_room = |layout: &Layout| {
            granted.and_then(Granted::layout).is_some_and(|room| {
                room.nodes() == layout.nodes() && room.max_per_node() >= layout.max_per_node()
            })
        };
        let by_options =
            by_options.filter(|layout| self.nodes.is_none_or(|nodes| nodes == layout.nodes()));
        of_granted.or(by_options.filter(|layout| !needs_room || has_room(layout)))
    }

    /// Seen with Slurm 22.05: what the job was asked for counts before what a step is told of nodes; where no ranks
    /// were asked for, there is one on each node.
    fn started_by_srun(&self, granted: &Granted) -> Result<StartedRanks, String> {
        if let Ok(all) = granted.started() {
            let nodes = granted.nodes()?;
            let is_same = !self.has_unknown_nodes
                && self.nodes.is_none_or(|wanted| nodes == Some(wanted))
                && self.per_node.is_none_or(|wanted| granted.per_node() == Some(wanted));
            return match is_same {
                true => Ok(StartedRanks { layout: all.layout.filter(|_| self.placed.is_none()), ..all }),
                false => Err("without '-n', how many ranks it starts on a part of the job's nodes differs between \
                              versions of Slurm"
                    .into()),
            };
        }
        self.check_placement()?;
        let nodes = self.nodes.or(granted.nodes()?);
        match (nodes, self.per_node) {
            (Some(nodes), Some(each)) => of_layout(nodes, each),
            (Some(nodes), None) if granted.has_one_on_each_node() && !self.shared => {
                of_layout(nodes, 1)
            }
            _ => granted.started(),
        }
    }
}

fn of_layout(nodes: u32, each: u32) -> Result<StartedRanks, String> {
    let layout = Layout::even(nodes, each, RankPlacement::Block)?;
    Ok(StartedRanks { ranks: layout.procs(), layout: Some(layout) })
}

/// How many values an option takes.
const fn values(effect: OptionEffect) -> usize {
    match effect {
        OptionEffect::None(values)
        | OptionEffect::Order(values)
        | OptionEffect::Share(values)
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
