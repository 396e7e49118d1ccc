//! What a script asks the batch system for, as Slurm reads it.

use records::{Layout, RankPlacement};

use super::{
    launchers::{LAUNCHERS, OptionEffect},
    variables::Variables,
};

/// How many ranks a command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedRanks {
    /// Ranks in all.
    pub ranks: u32,
    /// Where they run, where that is sure.
    pub layout: Option<Layout>,
}

/// A field and what is wrong with it.
type OptionFault = (String, String);

/// What Slurm was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    tasks: Option<u32>,
    per_node: Option<u32>,
    nodes: Option<u32>,
    /// Whether no other job may be on its nodes.
    exclusive: bool,
    /// Whether ranks are not dealt to nodes in blocks.
    is_dealt: bool,
    /// Why the rest does not count.
    unsure: Option<String>,
    /// Something else on which the number of ranks may rest.
    other: Option<String>,
}

/// How directives of other batch systems begin.
const OTHERS: [&str; 9] =
    ["#PBS", "#BSUB", "#PJM", "#flux:", "#FLUX:", "#COBALT", "#OAR", "#$ ", "#@ "];
/// Variables by which Slurm's launchers know what was asked for.
const VARIABLES: [&str; 6] = [
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NNODES",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE",
];

impl Granted {
    /// Takes in a comment line before the first command.
    ///
    /// # Errors
    /// A number in it is none.
    pub fn take(&mut self, comment: &str) -> Result<(), OptionFault> {
        if OTHERS.iter().any(|begin| comment.starts_with(begin)) {
            self.unsure.get_or_insert_with(|| "it is written for several batch systems".to_owned());
        }
        let Some(options) = comment.strip_prefix("#SBATCH") else { return Ok(()) };
        let Some(words) = shlex::split(options) else {
            return Err((String::new(), "has a quote that is not closed".into()));
        };
        if words.iter().any(|word| word == "hetjob" || word == "packjob") {
            self.unsure = Some("its parts have ranks of their own (hetjob)".to_owned());
        }
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                // `-n8`
                None if word.starts_with('-') && !word.starts_with("--") && word.len() > 2 => {
                    word.split_at_checked(2).map_or((word, None), |(name, rest)| (name, Some(rest)))
                }
                None => (word, None),
            };
            let takes_value = srun_effect(name.trim_start_matches('-')).is_some_and(|effect| {
                effect != OptionEffect::None(0) && effect != OptionEffect::Placement(0)
            });
            let value = value.or_else(|| if takes_value { words.next() } else { None });
            self.option(name, value.unwrap_or_default())?;
        }
        Ok(())
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), OptionFault> {
        let number = |text: &str| match text.parse() {
            Ok(number @ 1..) => Ok(Some(number)),
            _ => {
                let problem =
                    format!("is {}; expected a number of 1 or more", records::quoted(text));
                Err((name.to_owned(), problem))
            }
        };
        match name {
            "--ntasks" | "-n" => self.tasks = number(value)?,
            "--ntasks-per-node" | "--tasks-per-node" => self.per_node = number(value)?,
            "--nodes" | "-N" => match value.split_once('-') {
                Some((least, most)) if least != most => {
                    self.nodes = None;
                    self.other = Some(format!("{name} {value}"));
                }
                Some((nodes, _)) => self.nodes = number(nodes)?,
                None => self.nodes = number(value)?,
            },
            "--exclusive" => self.exclusive = true,
            "--distribution" | "-m" => self.is_dealt = !value.starts_with("block"),
            "--ntasks-per-socket"
            | "--ntasks-per-core"
            | "--ntasks-per-gpu"
            | "--gpus-per-task"
            | "--cpus-per-task"
            | "-c" => self.other = Some(name.to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// What the script's own variables say of it, and what it says of theirs.
    pub fn with(&mut self, variables: &mut Variables) {
        if let Some(name) = VARIABLES.iter().find(|name| variables.is_given(name)) {
            self.unsure = Some(format!("the script sets ${name}"));
        }
        if self.unsure.is_some() {
            return;
        }
        let given = [
            (&VARIABLES[..2], self.total()),
            (&VARIABLES[2..4], self.nodes),
            (&VARIABLES[4..5], self.per_node),
        ];
        for (names, number) in given {
            if let Some(number) = number {
                names.iter().for_each(|name| variables.set(name, number.to_string()));
            }
        }
    }

    fn total(&self) -> Option<u32> {
        self.tasks.or_else(|| self.nodes?.checked_mul(self.per_node?))
    }

    /// All ranks that it was asked for.
    ///
    /// # Errors
    /// They do not follow; why.
    pub fn started(&self) -> Result<StartedRanks, String> {
        self.check()?;
        match self.total() {
            Some(ranks) => Ok(StartedRanks { ranks, layout: self.layout() }),
            None => Err("the batch script asks for no number of ranks".into()),
        }
    }

    fn check(&self) -> Result<(), String> {
        match &self.unsure {
            Some(why) => {
                Err(format!("how many ranks the batch system gives it is not known: {why}"))
            }
            None => Ok(()),
        }
    }

    /// Nodes, where they are told or follow.
    ///
    /// # Errors
    /// Nothing of it counts; why.
    pub fn nodes(&self) -> Result<Option<u32>, String> {
        self.check()?;
        Ok(self.nodes.or(self.layout().map(|layout| layout.nodes())))
    }

    /// Ranks on each node, where they were asked for.
    pub fn per_node(&self) -> Option<u32> {
        self.per_node
    }

    /// Whether `srun` starts one rank on each node where it is not told otherwise.
    pub fn has_one_on_each_node(&self) -> bool {
        self.tasks.is_none() && self.per_node.is_none() && self.other.is_none()
    }

    /// Where the ranks are, where that is sure. Ranks without `--ntasks-per-node` fill one node before the next
    /// where other jobs may be there, too (seen with Slurm 22.05: 8 on 4 nodes are 5, 1, 1 and 1).
    pub fn layout(&self) -> Option<Layout> {
        let (nodes, each) = match (self.nodes, self.per_node, self.tasks) {
            (Some(nodes), Some(each), None) => (nodes, each),
            (Some(nodes), Some(each), Some(tasks)) => {
                (nodes.checked_mul(each) == Some(tasks)).then_some((nodes, each))?
            }
            (None, Some(each), Some(tasks)) if tasks.is_multiple_of(each) => (tasks / each, each),
            (Some(nodes), None, Some(tasks))
                if tasks == nodes || (self.exclusive && tasks.is_multiple_of(nodes)) =>
            {
                (nodes, tasks / nodes)
            }
            _ => return None,
        };
        let is_sure = self.unsure.is_none() && !self.is_dealt;
        Layout::even(nodes, each, RankPlacement::Block).ok().filter(|_| is_sure)
    }
}

/// What an option of `srun` does: `sbatch` has most of them, too.
fn srun_effect(name: &str) -> Option<OptionEffect> {
    LAUNCHERS.iter().find(|launcher| launcher.names.contains(&"srun"))?.effect(name)
}
