use std::collections::BTreeSet;

use records::FileError;

use crate::{Lines, rows::RanksOnNodes};

/// What a job's script tells of it, as Slurm reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Ranks in all.
    pub procs: Option<u32>,
    /// Ranks on each node.
    pub ranks_per_node: Option<u32>,
    /// Nodes.
    pub nodes: Option<u32>,
    /// Ranks that launchers were told; none where what they were told is not known.
    pub launched: BTreeSet<Option<u32>>,
    /// Modules of MPI libraries, `openmpi/4.0.3-qpsxmnc`.
    pub library: String,
    /// What is set in the environment, `UCX_NET_DEVICES=mlx5_0:1`.
    pub settings: Vec<String>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// It cannot be read, or a number in it is none.
    pub fn read(mut lines: Lines<'_>) -> Result<Self, FileError> {
        let mut script = Script::default();
        let mut problem = None;
        while let Some(line) = lines.next_line()? {
            if let Err(told) = script.take(line.trim()) {
                problem = Some(told);
                break;
            }
        }
        match problem {
            Some((field, told)) => Err(lines.fault(told).in_field(field)),
            None => Ok(script),
        }
    }

    fn take(&mut self, line: &str) -> Result<(), (String, String)> {
        if let Some(options) = line.strip_prefix("#SBATCH") {
            return self.options(options);
        }
        let is_launcher = |word: &str| {
            let name = word.rsplit('/').next().unwrap_or(word);
            LAUNCHERS.contains(&name)
        };
        let mut words = line.split_whitespace();
        if !line.starts_with('#') && words.any(is_launcher) {
            self.launched.extend(ranks_of_launcher(words));
        } else if let Some(modules) = line.strip_prefix("module load ") {
            let known = ["openmpi", "mpich", "mvapich", "intel-mpi", "impi", "cray-mpich"];
            for module in modules.split_whitespace() {
                if known.iter().any(|name| module.starts_with(name)) {
                    self.library = module.to_owned();
                }
            }
        } else if let Some(setting) = line.strip_prefix("export ") {
            self.settings.push(setting.trim().to_owned());
        }
        Ok(())
    }

    fn options(&mut self, options: &str) -> Result<(), (String, String)> {
        let mut words = options.split_whitespace().flat_map(|word| word.splitn(2, '='));
        while let Some(word) = words.next() {
            let kept = match word {
                "--ntasks" | "-n" => &mut self.procs,
                "--ntasks-per-node" => &mut self.ranks_per_node,
                "--nodes" | "-N" => &mut self.nodes,
                _ => continue,
            };
            let text = words.next().unwrap_or_default();
            match text.parse() {
                Ok(number) if number > 0 => *kept = Some(number),
                _ => {
                    let problem =
                        format!("is {}; expected a number of 1 or more", records::quoted(text));
                    return Err((word.to_owned(), problem));
                }
            }
        }
        Ok(())
    }

    /// Where the ranks ran, as far as that follows.
    pub fn layout(&self) -> Option<RanksOnNodes> {
        self.granted()
            .filter(|layout| self.launched.iter().all(|ranks| *ranks == Some(layout.procs())))
    }

    /// Where the batch system put them.
    fn granted(&self) -> Option<RanksOnNodes> {
        let nodes = match (self.nodes, self.ranks_per_node, self.procs) {
            (Some(nodes), Some(each), _) => (nodes, each),
            (None, Some(each), Some(procs)) if procs.is_multiple_of(each) => (procs / each, each),
            (Some(nodes), None, Some(procs)) if procs.is_multiple_of(nodes) => {
                (nodes, procs / nodes)
            }
            _ => return None,
        };
        RanksOnNodes::new(nodes.0, nodes.1).ok()
    }

    /// Ranks in all, as far as that follows: as a launcher was told, where all were told the same.
    pub fn ranks(&self) -> Option<u32> {
        match self.launched.len() {
            0 => self.procs.or_else(|| self.granted().map(RanksOnNodes::procs)),
            1 => *self.launched.first()?,
            _ => None,
        }
    }
}

/// Programs that start ranks.
const LAUNCHERS: [&str; 5] = ["srun", "mpirun", "mpiexec", "mpiexec.hydra", "prun"];

/// What a launcher was told of ranks, before the program that it starts: a number, or what is known only
/// when the script runs. Nothing where the batch system tells it.
fn ranks_of_launcher<'a>(words: impl Iterator<Item = &'a str>) -> Option<Option<u32>> {
    let mut words = words.flat_map(|word| word.splitn(2, '='));
    words.find(|word| ["-n", "-np", "--np", "--ntasks", "-ntasks"].contains(word))?;
    let told = words.next()?.trim_matches(['"', '$', '{', '}']);
    let granted = ["SLURM_NTASKS", "SLURM_NPROCS"].contains(&told);
    (!granted).then(|| told.parse().ok().filter(|ranks| *ranks > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> Result<Script, FileError> {
        Script::read(Lines::new(Path::new("job.sh"), text.as_bytes()))
    }

    #[test]
    fn ranks_nodes_and_library_are_told() {
        let script = read(
            "#!/bin/bash\n#SBATCH --ntasks=64\n#SBATCH --ntasks-per-node=32 --time=0:10:0\n\
             module load gcc/9.3.0-5abm3xg\nmodule load openmpi/4.0.3-qpsxmnc\n\
             export UCX_NET_DEVICES=mlx5_0:1\nsrun osu_allreduce\n",
        )
        .unwrap();
        assert_eq!(script.layout().unwrap().to_string(), "2x32");
        assert_eq!((script.ranks(), script.library.as_str()), (Some(64), "openmpi/4.0.3-qpsxmnc"));
        assert_eq!(script.settings, ["UCX_NET_DEVICES=mlx5_0:1"]);
        assert_eq!(read("#SBATCH -N 4 -n 8\n").unwrap().layout().unwrap().to_string(), "4x2");
        assert_eq!(read("srun x\n").unwrap().ranks(), None);
    }

    #[test]
    fn what_a_launcher_was_told_counts() {
        let of = |commands: &str| {
            let script = read(&format!("#SBATCH --nodes=2 --ntasks=64\n{commands}")).unwrap();
            (script.ranks(), script.layout().map(|layout| layout.to_string()))
        };
        let whole = (Some(64), Some("2x32".to_owned()));
        assert_eq!(of("srun osu_bcast\n"), whole);
        assert_eq!(of("mpirun -np 64 osu_bcast -i 100\n"), whole);
        assert_eq!(of("srun --ntasks=16 osu_bcast\n"), (Some(16), None));
        // Which of them wrote the output is not told.
        assert_eq!(of("mpirun -n 16 osu_bcast\nmpirun -n 32 osu_bcast\n"), (None, None));
        assert_eq!(of("for n in 2 4; do mpirun -n $n osu_bcast; done\n"), (None, None));
        assert_eq!(of("time /usr/bin/mpirun -n ${SLURM_NTASKS} osu_bcast\n"), whole);
        assert_eq!(of("# mpirun -n 2 osu_bcast\n"), whole);
    }

    #[test]
    fn a_wrong_number_is_told_with_its_line_and_field() {
        let error = read("#!/bin/sh\n#SBATCH --ntasks=many\n").unwrap_err().to_string();
        assert!(error.starts_with("job.sh, line 2, field --ntasks: is 'many'"), "{error}");
    }
}
