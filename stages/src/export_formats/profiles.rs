//! Profiles: what a library that stands before the MPI library replaces, one file per collective
//! and number of processes. PGMPITuneLib's text form knows mock-ups only; Colibri's own form every
//! method that its preload library carries out.

use libraries::{
    Error, Export, Exporter, File, FileFormat, HowToLoad, LayoutKey, Result,
    rules::{LayoutRanges, Rules},
};
use records::{
    Algorithm, Collective, Layout, Method, Native, Point, RangeMethod, Ranges, document,
    profile::{OtherProcs, Profile, REPLACED, pgtune},
    summary::LoadWay,
};

use site::{programs, ranks::PRELOAD_LIBRARY};

/// Names the directory of profiles that the preload library loads.
pub const PROFILES_VARIABLE: &str = "COLIBRI_PROFILES";

/// The environment variables by which the preload library loads a directory, `NAME` and value.
pub fn preload_variables(directory: &str) -> Vec<(String, String)> {
    // Where it is not installed beside this command its name alone is known.
    let library = programs::find(PRELOAD_LIBRARY)
        .map_or_else(|_| PRELOAD_LIBRARY.into(), |path| path.display().to_string());
    let set = [(PROFILES_VARIABLE, directory.to_owned()), ("LD_PRELOAD", library)];
    set.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A directory of profiles.
pub enum Profiles {
    /// PGMPITuneLib's.
    Pgtune,
    /// Colibri's own.
    Colibri,
}

/// PGMPITuneLib's form.
pub static PGTUNE: FileFormat = FileFormat {
    name: "pgtune",
    about: "PGMPITuneLib: a directory of profiles (mock-ups only)",
    way: Some(LoadWay::Preload),
    file: "profiles",
    takes_library: false,
    exporter: |version, _| no_version(version).map(|()| Box::new(Profiles::Pgtune) as _),
    read: None,
    compile: None,
};

/// Colibri's own form.
pub static PROFILE: FileFormat = FileFormat {
    name: "profile",
    about: "Colibri's preload library: a directory of profiles",
    way: Some(LoadWay::Preload),
    file: "profiles",
    takes_library: false,
    exporter: |version, _| no_version(version).map(|()| Box::new(Profiles::Colibri) as _),
    read: None,
    compile: None,
};

fn no_version(version: Option<&str>) -> Result<()> {
    if let Some(version) = version {
        return Err(Error::Usage(format!(
            "--target-version {version}: profiles are the same for every version"
        )));
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
        Method::own(algorithm).with_segment(segment_bytes)
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        match (self, method) {
            (_, Method::Native(_)) => Err(format!(
                "{} replaces calls; it cannot make the library run {method}",
                self.target()
            )),
            (Profiles::Colibri, Method::Plugin(_)) => {
                Err(format!("{} carries out no plug-ins, such as {method}", self.target()))
            }
            (_, Method::Other(_)) => {
                Err(format!("{method} was timed elsewhere; Colibri cannot run it"))
            }
            (Profiles::Pgtune, Method::Own(_)) => {
                Err(format!("PGMPITuneLib has mock-ups only, not {method}"))
            }
            (Profiles::Pgtune, _) => {
                let ranges = Ranges::from_starts([(0, method.clone().into())].into(), 0);
                let profile = Profile::new(point.collective, point.procs(), ranges);
                pgtune::format(&profile).map(|_| ())
            }
            (Profiles::Colibri, _) if !REPLACED.contains(&point.collective) => {
                Err(format!("{} replaces no calls of {}", self.target(), point.collective))
            }
            (Profiles::Colibri, Method::Own(method)) => {
                runner::ScheduledMethod::new(point.collective, method)
                    .and_then(|method| method.check_ranks(point.procs()))
                    .map_err(|error| error.to_string())
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

    fn is_directory(&self) -> bool {
        true
    }

    fn layout_key(&self, layout: Layout) -> LayoutKey {
        match self {
            Profiles::Colibri => LayoutKey::Whole(layout),
            Profiles::Pgtune => LayoutKey::Procs(layout.procs()),
        }
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let mut files = Vec::new();
        for Rules { collective, sections } in export.rules {
            let mut profiles = profiles(*collective, sections);
            for (profile, section) in profiles.iter_mut().zip(sections) {
                let is_its = |of: &(Collective, Layout)| *of == (*collective, section.layout);
                let lines =
                    export.comments.iter().filter(|line| line.of.as_ref().is_none_or(is_its));
                profile.about = lines.map(ToString::to_string).collect();
            }
            // One without ranges says where another one ends.
            if profiles.iter().all(|profile| profile.ranges.is_empty()) {
                continue;
            }
            let profiles = profiles.into_iter();
            for profile in
                profiles.skip_while(|profile| profile.layout.is_none() && profile.ranges.is_empty())
            {
                let name = profile.file_stem();
                files.push(match self {
                    Profiles::Pgtune if profile.ranges.is_empty() => continue,
                    Profiles::Pgtune => File {
                        name: format!("{name}.prf"),
                        text: pgtune::format(&profile).map_err(Error::Failed)?,
                    },
                    Profiles::Colibri => {
                        File { name: format!("{name}.json"), text: document::text(&profile)? }
                    }
                });
            }
        }
        Ok(files)
    }

    fn environment(&self, file: &str, _: &Export<'_>) -> Option<Vec<(String, String)>> {
        let Profiles::Colibri = self else { return None };
        programs::find(PRELOAD_LIBRARY).ok()?;
        Some(preload_variables(file))
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> HowToLoad {
        match self {
            Profiles::Pgtune => {
                let command = format!("start it with the directory of profiles {file}");
                HowToLoad::new("PGMPITuneLib", command)
            }
            Profiles::Colibri => {
                let handed_on = |before: &str, between: &str| {
                    let one = |(name, value)| format!("{before} {name}{between}{value}");
                    preload_variables(file).into_iter().map(one).collect::<Vec<_>>().join(" ")
                };
                let open_mpi = format!("mpirun {} ...", handed_on("-x", "="));
                let mpich = format!("mpirun {} ...", handed_on("-genv", " "));
                HowToLoad::new("Preload library", open_mpi).or("MPICH, Intel MPI", mpich)
            }
        }
    }
}

/// What replaces the default at each number of processes. Each holds up to the next, so that one
/// without ranges says that the one below it ends there; the last holds at its own size alone. Where
/// nodes held several ranks each profile names its layout.
fn profiles(collective: Collective, sections: &[LayoutRanges]) -> Vec<Profile> {
    if sections.iter().any(|section| !section.layout.is_flat()) {
        let of_layout = |section: &LayoutRanges| {
            Profile::of_layout(collective, section.layout, ranges(section))
        };
        return sections.iter().map(of_layout).collect();
    }
    let of_procs =
        |section: &LayoutRanges| Profile::new(collective, section.procs(), ranges(section));
    let mut profiles: Vec<Profile> = sections.iter().map(of_procs).collect();
    if let Some((_, below)) = profiles.split_last_mut() {
        below.iter_mut().for_each(|profile| profile.other_procs = OtherProcs::NearestBelow);
    }
    profiles
}

/// What replaces the default in a section.
fn ranges(section: &LayoutRanges) -> Ranges<RangeMethod> {
    section.ranges.filter_map(|of| (of.method != Method::Default).then(|| of.clone()))
}

/// What the preload library takes for a method that was chosen: a native one becomes our own
/// schedule of the same algorithm with the same segments.
///
/// # Errors
/// Why there is none.
pub fn method_in_profile(point: Point, method: &Method) -> Result<Method, String> {
    let method = match method {
        Method::Native(Native { algorithm, segment_bytes, .. }) => {
            Method::own(*algorithm).with_segment(*segment_bytes)
        }
        other => other.clone(),
    };
    match &method {
        Method::Default => Ok(method),
        _ => Profiles::Colibri.express(point, &method).map(|()| method),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libraries::{Comment, openmpi};

    fn holding(first_bytes: u64, method: &str, last_bytes: u64) -> Ranges<RangeMethod> {
        let method: Method = method.parse().unwrap();
        Ranges::from_starts([(first_bytes, method.into())].into(), last_bytes)
    }

    fn at(collective: Collective, procs: u32) -> Point {
        Point::flat(collective, procs, 65536)
    }

    /// A program that loads them passes it over; whoever opens one is told first whether to.
    #[test]
    fn each_profile_begins_with_the_verdict_and_has_its_own_evidence() {
        let sections = [4, 8].map(|procs| LayoutRanges {
            layout: Layout::flat(procs),
            ranges: holding(64, "mockup:bcast_as_scatter_allgather", 128),
        });
        let rules = [Rules { collective: Collective::Bcast, sections: sections.into() }];
        let of = |procs| Comment {
            of: Some((Collective::Bcast, Layout::flat(procs))),
            text: format!("bcast on {procs}"),
        };
        let origin = [Comment::from("Verdict: Load it."), of(4), of(8)];
        let export = Export { rules: &rules, comments: &origin };
        let files = Profiles::Colibri.files(&export).unwrap();
        assert_eq!(files[1].name, "bcast-8.json");
        let profile: Profile = document::parse(&files[1].text, "x".as_ref()).unwrap();
        assert_eq!(profile.about, ["Verdict: Load it.", "bcast on 8"]);
        let text = &Profiles::Pgtune.files(&export).unwrap()[1].text;
        assert!(
            text.starts_with("# pgtune profile\n# Verdict: Load it.\n# bcast on 8\n"),
            "{text}"
        );
        assert_eq!(pgtune::parse(text, "x".as_ref()).unwrap().ranges, profile.ranges);
    }

    #[test]
    fn a_native_choice_becomes_our_own_schedule_where_there_is_one() {
        let replaced = |collective, procs, method: &str| {
            let method = method.parse().unwrap();
            method_in_profile(at(collective, procs), &method).map(|method| method.to_string())
        };
        use Collective::{Allgather, Allgatherv, Bcast, Reduce};
        for (collective, native, own) in [
            (Bcast, "native:openmpi:pipeline,segment=8KiB", "own:pipeline,segment=8KiB"),
            (Bcast, "native:openmpi:k-chain", "own:k-chain"),
            (Reduce, "native:openmpi:rabenseifner", "own:rabenseifner"),
            (Allgather, "native:openmpi:neighbor-exchange", "own:neighbor-exchange"),
            (Bcast, "default", "default"),
            (Bcast, "own:linear", "own:linear"),
        ] {
            assert_eq!(replaced(collective, 8, native).as_deref(), Ok(own));
        }
        for (collective, procs, native, part) in [
            (Allgather, 2, "native:openmpi:two-procs", "no algorithm two-procs"),
            (Allgather, 5, "native:openmpi:neighbor-exchange", "even number"),
            (Allgatherv, 8, "native:openmpi:ring", "replaces no calls of allgatherv"),
        ] {
            let reason = replaced(collective, procs, native).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        }
    }

    /// Every algorithm of Open MPI that can be forced, but those for two processes.
    #[test]
    fn what_cannot_be_replaced_is_known() {
        let mut lacking = Vec::new();
        for collective in REPLACED {
            for method in openmpi::methods(collective, &[0], 8, 65536) {
                if method_in_profile(at(collective, 8), &method).is_err() {
                    lacking.push(format!("{collective} {}", method.short()));
                }
            }
        }
        assert_eq!(lacking, ["allgather linear", "reduce_scatter_block recursive-doubling"]);
    }

    #[test]
    fn a_size_without_replacements_ends_what_holds_below_it() {
        let section = |procs: u32, method: &str| LayoutRanges {
            layout: procs.into(),
            ranges: holding(1, method, 64),
        };
        let sections = ["default", "own:linear", "default", "own:binary"];
        let sections: Vec<LayoutRanges> = sections
            .iter()
            .zip([2, 4, 8, 16])
            .map(|(method, procs)| section(procs, method))
            .collect();
        let rules = [Rules { collective: Collective::Bcast, sections }];
        let export = Export { rules: &rules, comments: &[] };
        let files = |form: Profiles| -> Vec<String> {
            let files = form.files(&export).unwrap();
            files.into_iter().map(|file| file.name).collect()
        };
        assert_eq!(files(Profiles::Colibri), ["bcast-4.json", "bcast-8.json", "bcast-16.json"]);
        let texts = Profiles::Colibri.files(&export).unwrap();
        let below = |text: &str| text.contains("nearest_below");
        let below: Vec<bool> = texts.iter().map(|file| below(&file.text)).collect();
        assert_eq!(below, [true, true, false]);
    }
}
