//! What was measured on: written into every record and document.

use serde::{Deserialize, Serialize};

use crate::Layout;

/// More processors than this kept busy by something else falsify what is measured beside it.
const BUSY: f64 = 0.3;

/// A clock and how finely it sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockSource {
    /// `CLOCK_MONOTONIC`, `CLOCK_MONOTONIC_RAW`, `MPI_Wtime`, or `rdtscp` where it is invariant.
    pub name: String,
    /// Smallest step between two different readings.
    pub resolution_seconds: f64,
    /// What one reading costs.
    pub cost_seconds: f64,
}

/// The machines, the MPI library and the state in which they were measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Platform {
    /// Host name of each rank, in rank order.
    pub hosts: Vec<String>,
    /// What MPI_Get_library_version says, first line.
    pub mpi_library: String,
    /// Kernel release of rank 0.
    pub kernel: String,
    /// Processor model of rank 0.
    pub processor: String,
    /// Processors of rank 0's machine.
    pub cores: u32,
    /// One-minute load average of rank 0's machine before the start.
    pub load: f64,
    /// How many of rank 0's processors something else kept busy just before the start.
    pub busy_processors: f64,
    /// The clock that timed: its name, and whether all ranks share it.
    pub clock: String,
    /// Smallest step of the clock seen, in seconds.
    pub clock_resolution_seconds: f64,
    /// Every clock that rank 0 could have read, the one that timed among them.
    pub clocks: Vec<ClockSource>,
    /// What sets the frequency of rank 0's processors, such as `performance`; empty where the
    /// kernel does not say.
    pub governor: String,
    /// What carries the messages, as far as the MPI library says: `pml ob1; btl self, tcp`,
    /// `ch4:ofi`.
    pub transport: String,
    /// Settings of the MPI library taken from the environment, `NAME=value`.
    pub settings: Vec<String>,
    /// The command that launched the ranks.
    pub launcher: String,
    /// The virtual cluster measured on, such as `8 nodes, 100mbit`; empty on a real one.
    pub testbed: String,
}

impl Platform {
    /// The ranks and their nodes; nothing where no hosts are known.
    pub fn nodes(&self) -> Option<Layout> {
        Layout::from_nodes(&self.hosts).ok()
    }

    /// The ranks and their nodes, where several nodes hold several ranks: there the number of
    /// processes alone does not tell a communicator.
    pub fn layout(&self) -> Option<Layout> {
        self.nodes().filter(|job| job.nodes() > 1 && !job.is_flat())
    }

    /// For headings: `8 ranks on 8 hosts, Open MPI 4.1.4`.
    pub fn summary(&self) -> String {
        match self.library() {
            "" => self.cluster(),
            library => format!("{}, {library}", self.cluster()),
        }
    }

    /// The MPI library with its version: `Open MPI v4.1.4`.
    pub fn library(&self) -> &str {
        self.mpi_library.split(',').next().unwrap_or_default()
    }

    /// `8 ranks on 8 hosts`.
    pub fn cluster(&self) -> String {
        let mut hosts: Vec<&String> = self.hosts.iter().collect();
        hosts.sort();
        hosts.dedup();
        let testbed = match self.testbed.as_str() {
            "" => String::new(),
            description => format!(", testbed of {description}"),
        };
        let on = match hosts.as_slice() {
            // As an import has it where nobody tells where the ranks were.
            [one] if *one == "unknown" => "hosts not known".to_owned(),
            [_] => "1 host".to_owned(),
            hosts => format!("{} hosts", hosts.len()),
        };
        format!("{} ranks on {on}{testbed}", self.hosts.len())
    }

    /// What to say where the machine was busy before the measuring began.
    pub fn busy(&self) -> Option<String> {
        let Platform { busy_processors, cores, .. } = self;
        (*busy_processors > BUSY).then(|| {
            format!(
                "the machine was busy just before the start ({busy_processors:.1} of {cores} \
                 processors), so these times are unreliable; measure again when it is idle"
            )
        })
    }
}

/// The processor's name in /proc/cpuinfo, whose key differs between architectures; empty where it has none.
pub fn processor_name(cpuinfo: &str) -> String {
    let value_of = |wanted: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.trim() == wanted).map(|(_, value)| value.trim().to_owned())
    };
    ["model name", "cpu model", "cpu", "CPU part"]
        .into_iter()
        .find_map(value_of)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_named_on_every_architecture() {
        for (cpuinfo, name) in [
            ("processor\t: 0\ncpu family\t: 6\nmodel name\t: Xeon 8\n", "Xeon 8"),
            ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "0xd0c"),
            ("cpu\t\t: POWER9, altivec supported\n", "POWER9, altivec supported"),
            ("", ""),
        ] {
            assert_eq!(processor_name(cpuinfo), name);
        }
    }
}
