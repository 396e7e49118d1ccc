//! Which versions of its target a format is known for.

use records::quoted;

use crate::error::{Result, usage};

/// The versions of a target that are known, by their first two numbers.
pub struct Versions {
    /// The target's name.
    pub target: &'static str,
    /// Ascending.
    pub known: &'static [(u32, u32)],
}

impl Versions {
    /// Reads `4.1` or `4.1.4`.
    ///
    /// # Errors
    /// It is no version, or none that is known; the nearest one is named.
    pub fn read(&self, text: &str) -> Result<(u32, u32)> {
        let Versions { target, known } = self;
        let Some(version) = numbers(text) else {
            let (major, minor) = known.last().copied().unwrap_or_default();
            usage!(
                "--target-version {} is not a version; write it as {major}.{minor} or \
                 {major}.{minor}.1",
                quoted(text)
            );
        };
        if known.contains(&version) {
            return Ok(version);
        }
        let far =
            |(major, minor): &&(u32, u32)| (major.abs_diff(version.0), minor.abs_diff(version.1));
        let names: Vec<String> = known.iter().map(in_words).collect();
        let names = match &names[..] {
            [first, .., last] if names.len() > 6 => format!("{first} to {last}"),
            names => names.join(", "),
        };
        usage!(
            "{target} {} is not known; the nearest is {} (known: {}); name one by --target-version",
            in_words(&version),
            known.iter().min_by_key(far).map(in_words).unwrap_or_default(),
            names
        )
    }
}

fn in_words((major, minor): &(u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// The first two of two or three numbers.
pub fn numbers(text: &str) -> Option<(u32, u32)> {
    let number = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
        true => part.parse::<u32>().ok(),
        false => None,
    };
    let numbers: Option<Vec<u32>> = text.split('.').map(number).collect();
    match numbers?[..] {
        [major, minor] | [major, minor, _] => Some((major, minor)),
        _ => None,
    }
}

/// The first two numbers of the first version in a text, such as `MPICH Version: 4.0.2`.
pub fn said(text: &str) -> Option<(u32, u32)> {
    let words = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let numbers = |word: &str| {
        let mut parts = word.split('.').map(str::parse::<u32>);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    };
    words.into_iter().find_map(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_out_of_what_a_library_says() {
        for (text, version) in [
            ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", (4, 1)),
            ("MPICH Version:\t4.0.2\nMPICH Release date: Thu Apr 7", (4, 0)),
            ("MPICH Version: 5.0.2", (5, 0)),
            ("Intel(R) MPI Library 2021.19.0 for Linux* OS", (2021, 19)),
        ] {
            assert_eq!(said(text), Some(version), "{text}");
        }
        assert_eq!(said("some library, built in 2020."), None);
    }

    #[test]
    fn only_what_is_known_is_taken_and_the_nearest_is_named() {
        let versions = Versions { target: "Open MPI", known: &[(4, 0), (4, 1), (5, 0)] };
        for text in ["4.1", "4.1.0", "4.1.4"] {
            assert_eq!(versions.read(text).unwrap(), (4, 1));
        }
        for text in ["4", "4.1.x.y", "4.1.4.2", "4.1.x", "4.+1", "4.", "", "v4.1", "4.99999999999"]
        {
            let error = versions.read(text).unwrap_err().to_string();
            assert!(error.contains("is not a version; write it as 5.0"), "{text}: {error}");
        }
        for (text, nearest) in [("9.9", "5.0"), ("4.3", "4.1"), ("3.1", "4.1"), ("3.0.6", "4.0")] {
            let error = versions.read(text).unwrap_err().to_string();
            let wanted = format!("the nearest is {nearest} (known: 4.0, 4.1, 5.0)");
            assert!(error.contains(&wanted), "{text}: {error}");
        }
    }
}
