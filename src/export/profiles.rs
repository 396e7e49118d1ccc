//! Profiles: what a library that stands before the MPI library replaces, one file per collective
//! and number of processes. PGMPITuneLib's text form knows mock-ups only; Colibri's own form every
//! method that its preload library carries out.

use anyhow::{Result, anyhow};
use records::{
    Algorithm, Collective, Method, Point, document,
    profile::{Profile, Range, pgtune},
};
use verification::{
    rules::{Rules, Section},
    selection::Choice,
    statistics::geometric_mean,
};

use super::{Export, Exporter, File};
use crate::error::usage;

/// A directory of profiles.
pub enum Profiles {
    /// PGMPITuneLib's.
    Pgtune,
    /// Colibri's own.
    Colibri,
}

impl Profiles {
    /// In PGMPITuneLib's form, which has no versions.
    ///
    /// # Errors
    /// A version is given.
    pub fn pgtune(version: Option<&str>) -> Result<Self> {
        no_version(version)?;
        Ok(Profiles::Pgtune)
    }

    /// In Colibri's form.
    ///
    /// # Errors
    /// A version is given.
    pub fn colibri(version: Option<&str>) -> Result<Self> {
        no_version(version)?;
        Ok(Profiles::Colibri)
    }
}

fn no_version(version: Option<&str>) -> Result<()> {
    if let Some(version) = version {
        usage!("--target-version {version}: profiles are the same for every version");
    }
    Ok(())
}

impl Exporter for Profiles {
    fn target(&self) -> String {
        match self {
            Profiles::Pgtune => "PGMPITuneLib".into(),
            Profiles::Colibri => "Colibri's preload library".into(),
        }
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        Method::Own { algorithm, segment_bytes }
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        match (self, method) {
            (_, Method::Native(_)) => Err(format!(
                "{} replaces calls; it cannot make the library run {method}",
                self.target()
            )),
            (Profiles::Pgtune, Method::Own { .. }) => {
                Err(format!("PGMPITuneLib has mock-ups only, not {method}"))
            }
            (Profiles::Pgtune, _) => {
                let range =
                    Range { first_bytes: 0, last_bytes: 0, method: method.clone(), gain: None };
                let profile = Profile::new(point.collective, point.procs, vec![range]);
                pgtune::format(&profile).map(|_| ())
            }
            (Profiles::Colibri, _) => Ok(()),
        }
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        match self {
            Profiles::Pgtune => Vec::new(),
            Profiles::Colibri => models::algorithms(collective).to_vec(),
        }
    }

    fn one_for_all_sizes(&self, _: Collective) -> Option<&'static str> {
        None
    }

    fn message_size(&self, _: Collective) -> Option<&'static str> {
        None
    }

    fn is_directory(&self) -> bool {
        true
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let mut files = Vec::new();
        for Rules { collective, sections } in export.rules {
            for section in sections {
                let profile = profile(*collective, section, export.choices);
                if profile.ranges.is_empty() {
                    continue;
                }
                let name = format!("{collective}-{}", section.procs);
                files.push(match self {
                    Profiles::Pgtune => File {
                        name: format!("{name}.prf"),
                        text: pgtune::format(&profile).map_err(|error| anyhow!(error))?,
                    },
                    Profiles::Colibri => {
                        File { name: format!("{name}.json"), text: document::text(&profile)? }
                    }
                });
            }
        }
        Ok(files)
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> String {
        match self {
            Profiles::Pgtune => {
                format!("PGMPITuneLib:  start it with the directory of profiles {file}")
            }
            Profiles::Colibri => format!(
                "Preload library:  export COLIBRI_PROFILES={file} and preload libcolibri.so"
            ),
        }
    }
}

/// What replaces the default at one number of processes.
fn profile(collective: Collective, section: &Section, choices: &[Choice]) -> Profile {
    let ends = section.bands.iter().skip(1).map(|next| next.from_bytes - 1);
    let ranges = section
        .bands
        .iter()
        .zip(ends.chain([section.last_bytes]))
        .filter(|(band, _)| band.method != Method::Default)
        .map(|(band, last_bytes)| {
            let inside = |choice: &&Choice| {
                choice.point.collective == collective
                    && choice.point.procs == section.procs
                    && (band.from_bytes..=last_bytes).contains(&choice.point.bytes)
                    && choice.method == band.method
                    && choice.default_seconds != choice.seconds
            };
            let gains = choices.iter().filter(inside);
            let gains: Vec<f64> =
                gains.map(|choice| choice.default_seconds / choice.seconds).collect();
            let method = band.method.clone();
            let gain = geometric_mean(&gains);
            Range { first_bytes: band.from_bytes, last_bytes, method, gain }
        });
    Profile::new(collective, section.procs, ranges.collect())
}
