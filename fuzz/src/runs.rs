//! A whole run's directory as one text, so that it is damaged as one file is.

use std::{fs, path::Path};

use crate::files;

/// Stands before each file's name, alone on its line.
const MARK: &str = "==> ";

/// The files of a run that are read by anything; others are not made, whatever a damage names.
const NAMES: [&str; 16] = [
    "calibration.json",
    "observations.csv",
    "groups.csv",
    "inside.csv",
    "inside-groups.csv",
    "pairs.csv",
    "links.csv",
    "plan.json",
    "measurements.csv",
    "plan-2.json",
    "measurements-2.csv",
    "choices.json",
    "summary.json",
    "penalty.json",
    "violations.json",
    "decisions.json",
];

/// Right runs.
pub fn samples() -> Vec<Vec<u8>> {
    let measured = [
        ("calibration.json", files::calibration()),
        ("plan.json", files::plan()),
        ("measurements.csv", files::measurements()),
    ];
    let links = ("links.csv", files::links());
    let reported = [
        ("summary.json", files::summary()),
        ("penalty.json", files::penalties()),
        ("violations.json", files::violations()),
        ("decisions.json", files::decisions()),
    ];
    let calibrated = [
        ("observations.csv", files::observations()),
        ("groups.csv", files::groups()),
        ("inside.csv", files::observations()),
        ("inside-groups.csv", files::groups()),
        ("pairs.csv", files::pair_times()),
    ];
    let chosen = ("choices.json", files::choices());
    let whole = [&measured[..], &[links, chosen], &reported, &calibrated].concat();
    [&measured[..], &whole].map(pack).into()
}

fn pack(files: &[(&str, String)]) -> Vec<u8> {
    files
        .iter()
        .map(|(name, text)| format!("{MARK}{name}\n{text}"))
        .collect::<String>()
        .into_bytes()
}

/// Makes the files of a run in a directory.
///
/// # Panics
/// The system refuses.
pub fn unpack(run: &[u8], directory: &Path) {
    let mut name = None;
    let mut file = Vec::new();
    for line in run.split_inclusive(|byte| *byte == b'\n').chain([MARK.as_bytes()]) {
        match line.strip_prefix(MARK.as_bytes()) {
            Some(next) => {
                if let Some(name) = name {
                    fs::write(directory.join(name), &file).unwrap();
                }
                file.clear();
                let next = next.trim_ascii_end();
                name = NAMES.into_iter().find(|known| known.as_bytes() == next);
            }
            None => file.extend_from_slice(line),
        }
    }
}

/// A path of this thread's own, in memory where the system has such a place.
fn scratch() -> std::path::PathBuf {
    let shared = Path::new("/dev/shm");
    let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let thread = format!("{:?}", std::thread::current().id());
    let number: String = thread.chars().filter(char::is_ascii_digit).collect();
    place.join(format!("colibri-fuzz-{}-{number}", std::process::id()))
}

/// A directory that is empty, and goes when it is dropped.
#[derive(Debug)]
pub struct Scratch(std::path::PathBuf);

impl Scratch {
    /// Made anew.
    ///
    /// # Panics
    /// The system refuses.
    pub fn new() -> Self {
        let path = scratch();
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_made_as_it_was_packed_and_nothing_beside() {
        let scratch = Scratch::new();
        unpack(
            b"lost\n==> plan.json\n{\n}\n==> ../evil\nx\n==> measurements.csv\ny",
            scratch.path(),
        );
        let text = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
        assert_eq!((text("plan.json"), text("measurements.csv")), ("{\n}\n".into(), "y".into()));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
        for sample in samples() {
            unpack(&sample, scratch.path());
        }
        assert_eq!(text("measurements.csv"), files::measurements());
    }
}
