//! SimGrid's programs, built and run.

use std::{
    error::Error,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Two links between any two hosts, of 25 us and 125 MB/s each, or of that rate without latency.
const PLATFORM: &str = r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="c" prefix="n" suffix="" radical="0-255" speed="1Gf" bw="125MBps" lat="LATENCY"/>
  </zone>
</platform>
"#;

/// Hosts of four ranks: messages inside take the loopback, all others the host's one link.
const CORES: &str = r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="c" prefix="h" suffix="" radical="0-7" core="4" speed="1Gf" bw="125MBps" lat="25us"
             loopback_bw="1250MBps" loopback_lat="5us"/>
  </zone>
</platform>
"#;

/// The file with the host of each rank, one for each.
pub const HOSTS: &str = "hosts";
/// The same on hosts of several ranks.
pub const HOSTS_OF_CORES: &str = "hosts-of-cores";

/// Of a way over two links, in seconds.
pub const LATENCY: f64 = 50e-6;
pub const SECONDS_PER_BYTE: f64 = 8e-9;

/// SimGrid puts so many before each message.
pub const ENVELOPE: u64 = 16;

/// Our programs for SMPI, with the files that they need.
pub struct SimGrid {
    pub folder: PathBuf,
}

impl SimGrid {
    /// None where SimGrid is not installed, unless it has to be.
    pub fn build(name: &str) -> Result<Option<Self>, Box<dyn Error>> {
        if Command::new("smpirun").arg("-version").output().is_err() {
            crate::skipped::skipped(name, "no smpirun (Debian: libsimgrid-dev)");
            return Ok(None);
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder)?;
        for (file, latency) in [("latency.xml", "25us"), ("no-latency.xml", "0us")] {
            fs::write(folder.join(file), PLATFORM.replace("LATENCY", latency))?;
        }
        let hosts: String = (0..256).map(|host| format!("n{host}\n")).collect();
        fs::write(folder.join(HOSTS), hosts)?;
        fs::write(folder.join("cores.xml"), CORES)?;
        for program in ["collective", "replay"] {
            let source = format!("{}/tests/simgrid/{program}.c", env!("CARGO_MANIFEST_DIR"));
            let built = folder.join(program);
            let output =
                Command::new("smpicc").arg("-O1").arg("-o").arg(built).arg(source).output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into());
            }
        }
        Ok(Some(SimGrid { folder }))
    }

    /// Seconds that a collective takes by the algorithm of that name, or by SimGrid's own choice.
    pub fn collective(
        &self,
        settings: &[&str],
        platform: &str,
        (what, algorithm): (&str, Option<&str>),
        ranks: u32,
        bytes: u64,
    ) -> Result<f64, Box<dyn Error>> {
        let choice = algorithm.map(|name| format!("smpi/{what}:{name}"));
        let settings: Vec<&str> = settings.iter().copied().chain(choice.as_deref()).collect();
        let bytes = bytes.to_string();
        let on = (platform, HOSTS);
        self.run(&settings, on, ranks, "collective", &[what.as_ref(), bytes.as_ref()])
    }

    /// From the begin, which all ranks have in common, until the last one has ended.
    pub fn run(
        &self,
        settings: &[&str],
        (platform, hosts): (&str, &str),
        ranks: u32,
        program: &str,
        arguments: &[&OsStr],
    ) -> Result<f64, Box<dyn Error>> {
        let always = ["smpi/simulate-computation:no", "smpi/wtime:0"];
        let mut command = Command::new("smpirun");
        command.args(always.iter().chain(settings).map(|setting| format!("--cfg={setting}")));
        command.arg("--log=root.thresh:warning").arg("-np").arg(ranks.to_string());
        command.arg("-platform").arg(self.folder.join(platform));
        command.arg("-hostfile").arg(self.folder.join(hosts));
        command.arg(self.folder.join(program)).args(arguments);
        let output = command.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let line = |line: &str| -> Option<(f64, f64)> {
            let (begin, end) = line.split_once(' ')?;
            Some((begin.parse().ok()?, end.parse().ok()?))
        };
        let ranks_times: Vec<_> = text.lines().filter_map(line).collect();
        let begin_together = ranks_times.iter().all(|times| times.0 == ranks_times[0].0);
        if ranks_times.len() != ranks as usize || !begin_together {
            return Err(format!("smpirun printed: {text}").into());
        }
        Ok(ranks_times.iter().map(|(begin, end)| end - begin).fold(0.0, f64::max))
    }
}
