//! A Slurm of a test's own: munged, slurmctld and four slurmd on this host's loopback, all of whose
//! files lie in one temporary directory. Nothing of the system's is read or changed.

use std::{
    fmt::Write,
    fs::{self, File},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::skipped::skipped;

/// Nodes, each with two processors as Slurm counts.
pub const NODES: u32 = 4;

/// A Slurm that runs until it is dropped.
pub struct SlurmCluster {
    place: tempfile::TempDir,
    /// In the order in which they were started.
    daemons: Vec<Child>,
}

const SETTINGS: &str = "ClusterName=test
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SlurmdTimeout=20
KillWait=2
ReturnToService=2
MailProg=/bin/true
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
";

impl SlurmCluster {
    /// Nothing, and it is said that the test is skipped, where there is no Slurm or no root.
    pub fn up(test: &str) -> Option<Self> {
        let root = Command::new("id").arg("-u").output().unwrap();
        if root.stdout != b"0\n" {
            skipped(test, "needs root");
            return None;
        }
        // Debian keeps the daemons where not everybody looks.
        let programs = ["munged", "slurmctld", "slurmd", "srun", "salloc", "sinfo", "setpriv"];
        let is_there = |name: &&str| program(name).is_some();
        if let Some(missing) = programs.iter().find(|name| !is_there(name)) {
            skipped(test, &format!("no {missing} (Debian: munge slurmctld slurmd slurm-client)"));
            return None;
        }
        let place = tempfile::Builder::new().prefix("slurm-").tempdir().unwrap();
        let mut cluster = SlurmCluster { place, daemons: Vec::new() };
        cluster.start();
        Some(cluster)
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn start(&mut self) {
        // munged and the ranks' PMIx want a way to their sockets that is open to all.
        fs::set_permissions(self.path(), PermissionsExt::from_mode(0o755)).unwrap();
        self.munged();
        fs::write(self.path().join("slurm.conf"), self.configuration()).unwrap();
        self.daemon("slurmctld", "slurmctld", &["-D"]);
        for node in 0..NODES {
            let name = format!("v{node}");
            self.daemon(&format!("slurmd-{name}"), "slurmd", &["-D", "-N", &name]);
        }
        let limit = Instant::now() + Duration::from_secs(30);
        while self.idle_nodes() < NODES as usize {
            assert!(Instant::now() < limit, "the nodes do not come up:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn munged(&mut self) {
        let key = self.path().join("munge.key");
        let mut random = vec![0; 128];
        std::io::Read::read_exact(&mut File::open("/dev/urandom").unwrap(), &mut random).unwrap();
        fs::write(&key, random).unwrap();
        fs::set_permissions(&key, PermissionsExt::from_mode(0o400)).unwrap();
        let file = |option: &str, name: &str| {
            format!("--{option}={}", self.path().join(format!("munge.{name}")).display())
        };
        let arguments = [
            "--foreground".to_owned(),
            file("key-file", "key"),
            file("socket", "socket"),
            file("pid-file", "pid"),
            file("log-file", "log"),
            file("seed-file", "seed"),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.daemon("munged", "munged", &arguments);
        let socket = self.path().join("munge.socket");
        let limit = Instant::now() + Duration::from_secs(10);
        while !socket.exists() {
            assert!(Instant::now() < limit, "munged does not come up:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn configuration(&self) -> String {
        let place = self.path().display();
        let host = Command::new("uname").arg("-n").output().unwrap();
        let host = String::from_utf8(host.stdout).unwrap();
        let mut text = SETTINGS.to_owned();
        let [controller, nodes @ ..] = free_ports();
        write!(
            text,
            "SlurmctldHost={}(127.0.0.1)\n\
             SlurmctldPort={controller}\n\
             AuthInfo=socket={place}/munge.socket,cred_expire=5\n\
             StateSaveLocation={place}/state\n\
             SlurmdSpoolDir={place}/spool-%n\n\
             TmpFS={place}/tmp-%n\n\
             SlurmctldPidFile={place}/slurmctld.pid\n\
             SlurmdPidFile={place}/slurmd-%n.pid\n",
            host.trim()
        )
        .unwrap();
        fs::create_dir(self.path().join("state")).unwrap();
        for (node, port) in nodes.iter().enumerate() {
            writeln!(
                text,
                "NodeName=v{node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2"
            )
            .unwrap();
            // Slurm's PMIx keeps sockets there by the step's name alone: nodes must not share it.
            let temporary = self.path().join(format!("tmp-v{node}"));
            fs::create_dir(&temporary).unwrap();
            fs::set_permissions(&temporary, PermissionsExt::from_mode(0o1777)).unwrap();
        }
        text
    }

    /// Starts one in the foreground; it ends with this thread, however that ends.
    fn daemon(&mut self, name: &str, command: &str, arguments: &[&str]) {
        let log = File::create(self.path().join(format!("{name}.out"))).unwrap();
        let mut daemon = Command::new("setpriv");
        daemon.args(["--pdeathsig", "TERM"]).arg(program(command).unwrap()).args(arguments);
        daemon.env("SLURM_CONF", self.path().join("slurm.conf")).stdin(Stdio::null());
        daemon.stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(daemon.spawn().unwrap());
    }

    fn idle_nodes(&self) -> usize {
        let output = self.client("sinfo").args(["-h", "-N", "-t", "idle"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().count()
    }

    /// What the daemons have said.
    fn logs(&self) -> String {
        let entries = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs =
            entries.filter(|path| path.extension().is_some_and(|end| end == "out" || end == "log"));
        logs.map(|path| {
            format!("{}:\n{}\n", path.display(), fs::read_to_string(&path).unwrap_or_default())
        })
        .collect()
    }

    /// What Slurm says of a job's state, such as `RUNNING`; empty where it knows none.
    pub fn state(&self, job: &str) -> String {
        let output = self.client("scontrol").args(["show", "job", "-o", job]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let state = said.split_whitespace().find_map(|word| word.strip_prefix("JobState="));
        state.unwrap_or_default().to_owned()
    }

    /// A command of this Slurm's, without what an allocation around the test would say.
    pub fn client(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("SLURM_") {
                command.env_remove(variable);
            }
        }
        command.env("SLURM_CONF", self.path().join("slurm.conf"));
        command
    }
}

impl Drop for SlurmCluster {
    fn drop(&mut self) {
        // Jobs first: their steps are no children of ours. A panic here would hide the test's.
        let _ = self.client("scancel").args(["--user", "root"]).status();
        let limit = Instant::now() + Duration::from_secs(10);
        while self.idle_nodes() < NODES as usize && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(50));
        }
        for daemon in self.daemons.iter_mut().rev() {
            let term = ["-c", &format!("kill -TERM {}", daemon.id())].map(str::to_owned);
            let _ = Command::new("sh").args(term).status();
        }
        for daemon in self.daemons.iter_mut().rev() {
            let limit = Instant::now() + Duration::from_secs(5);
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(name)).find(|path| path.is_file())
}

/// As many as there are daemons that listen; all held at once, so that they differ.
fn free_ports() -> [u16; 1 + NODES as usize] {
    let held = [(); 1 + NODES as usize].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
