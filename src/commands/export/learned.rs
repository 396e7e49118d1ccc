//! Profiles of what applications have taught.

use anyhow::Result;
use records::counted;
use site::usage;
use stages::{
    export_formats::{Export, ExportFormat},
    exporting::write_files,
    learned::{LearnedFiles, LearnedProfiles, platform, profiles},
};

use super::{ExportCommand, load};

impl ExportCommand {
    /// Writes into OUTPUT; where there are several libraries or processors, into a folder there for each.
    pub(super) fn write_learned(self, format: ExportFormat, learned: LearnedFiles) -> Result<()> {
        self.check_flags_of_learned(format)?;
        let exporter = format.careful_exporter(None, None, false)?;
        let Some(output) = self.output else {
            usage!("profiles are a directory; name it by --output");
        };
        let are_several = learned.len() > 1;
        for (path, learned) in learned {
            let found = profiles(&learned, &exporter, self.unconfirmed)?;
            say!("verdict: {}: {}", platform(&learned), verdict(&found));
            for reason in &found.left_out {
                say!("left out: {reason}");
            }
            if found.files.is_empty() {
                say!("nothing replaces the default, so there is no file to write");
                continue;
            }
            let directory = match are_several {
                true => output.join(path.file_stem().unwrap_or_default()),
                false => output.clone(),
            };
            write_files(&directory, found.files, &*exporter)?;
            load(&*exporter, &Export { rules: &[], comments: &[] }, &directory, None)?;
        }
        Ok(())
    }

    fn check_flags_of_learned(&self, format: ExportFormat) -> Result<()> {
        if !format.is_preloaded() {
            usage!(
                "{}: what applications have taught are methods of Colibri's preload library, which --target \
                 profile writes; the MPI library's own algorithms, which its files name, are not among them",
                self.directory.display()
            );
        }
        let given = [
            ("--target-version", self.target_version.is_some()),
            ("--target-library", self.target_library.is_some()),
            ("--report", self.report.is_some()),
            ("--commutative", self.commutative),
            ("--compile", self.compile.is_some()),
            ("--modulefiles", self.modulefiles.is_some()),
            ("--decisions", self.decisions.is_some()),
            ("--layouts", self.layouts.is_some()),
            ("--calibration", self.model.calibration.is_some()),
            ("--model", self.model.model.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => usage!(
                "{flag}: is for the choices of a run; {} holds what applications have taught",
                self.directory.display()
            ),
            None => Ok(()),
        }
    }
}

fn verdict(found: &LearnedProfiles) -> String {
    let (advice, shown) = match found.faster {
        0 => ("Nothing to load.", "no kind".to_owned()),
        faster => ("Load it.", counted(faster, "kind")),
    };
    let more = match found.not_shown {
        0 => String::new(),
        count => format!(
            "; of {} the method in use is not shown to be faster yet (--unconfirmed writes it, too)",
            counted(count, "other")
        ),
    };
    format!("{advice} Trials show a method faster than the default for {shown} of calls{more}.")
}
