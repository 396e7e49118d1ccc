//! What carries the messages, as far as the MPI library tells.

use std::{collections::BTreeSet, fs};

use crate::{Result, linked};

/// `pml ob1; btl self, tcp` (Open MPI, from the components that it keeps loaded), `ch4:ofi`
/// (MPICH, from what it says of itself); with the network libraries that are loaded beside these.
/// Empty where nothing is known.
///
/// # Errors
/// The MPI library refuses.
pub fn in_use() -> Result<String> {
    let said = linked::library_text()?;
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    Ok(describe(&said, &maps))
}

fn describe(said: &str, maps: &str) -> String {
    let files: BTreeSet<&str> =
        maps.lines().filter_map(|line| line.rsplit_once('/').map(|(_, file)| file)).collect();
    let mut parts = Vec::new();
    for framework in ["pml", "mtl", "btl"] {
        let prefix = format!("mca_{framework}_");
        let names: Vec<&str> = files
            .iter()
            .filter_map(|file| file.strip_prefix(&*prefix)?.split('.').next())
            .collect();
        if !names.is_empty() {
            parts.push(format!("{framework} {}", names.join(", ")));
        }
    }
    parts.extend(said.lines().find_map(device).map(str::to_owned));
    for library in ["libfabric", "libucp", "libpsm2"] {
        if files.iter().any(|file| file.starts_with(library)) {
            parts.push(library.to_owned());
        }
    }
    parts.join("; ")
}

/// MPICH's `MPICH Device:    ch4:ofi`.
fn device(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    (key.trim() == "MPICH Device").then(|| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_mpi_and_mpich_are_read() {
        let maps = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/openmpi3/mca_btl_tcp.so\n\
                    7f02-7f03 r-xp 0 08:01 1 /usr/lib/openmpi3/mca_btl_tcp.so\n\
                    7f04-7f05 r-xp 0 08:01 1 /usr/lib/openmpi3/mca_btl_self.so\n\
                    7f06-7f07 r-xp 0 08:01 1 /usr/lib/openmpi3/mca_pml_ob1.so\n\
                    7f08-7f09 rw-p 0 00:00 0 [heap]\n";
        assert_eq!(describe("Open MPI v4.1.4", maps), "pml ob1; btl self, tcp");
        let said = "MPICH Version:      4.0.2\nMPICH Device:       ch4:ofi\n";
        let maps = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libfabric.so.1.19.0\n";
        assert_eq!(describe(said, maps), "ch4:ofi; libfabric");
        assert_eq!(describe("another", ""), "");
    }
}
