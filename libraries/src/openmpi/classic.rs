//! Open MPI's classic rules file for component coll/tuned, as 4.0, 4.1 and 5.0 read it.
//!
//! The reader takes whitespace-separated numbers and skips `#` comments. A communicator takes the
//! last section whose size is at most its own, a call the last band whose first byte is at most
//! its message; algorithm 0 leaves the call to the library. So each collective begins with a
//! section 0 and ends with a section past the largest size measured, each section with a band 0,
//! and nothing is claimed outside the grid. (Open MPI 6 reads sections of a classic file shifted
//! by one; it wants the JSON form.)

use records::{Algorithm, Collective, Layout, Method, Point, quantity};

use super::{
    algorithms::{self, LIBRARY, id},
    han, han_file,
    tuned::{RuleLine, environment, express, lines, message_size, named, one_for_all_sizes},
};
use crate::{
    danger::UnsafeFor,
    error::{Result, fail, usage},
    exporter::{ALL_BLOCKS, Export, Exporter, File, HowToLoad, LayoutKey},
    rules::{LayoutRanges, Rules},
    spans::{ProcsSpan, narrow, spans},
    version::{Versions, numbers},
};

const VERSIONS: Versions = Versions { target: "Open MPI", known: &[(4, 0), (4, 1), (5, 0)] };

/// The classic form.
pub struct Classic {
    /// The first two numbers of the version.
    version: (u32, u32),
}

impl Classic {
    /// For a version; 4.1 where none is given.
    ///
    /// # Errors
    /// The version reads another form.
    pub fn new(version: Option<&str>) -> Result<Self> {
        let version = version.unwrap_or("4.1");
        if let Some((6, 0)) = numbers(version) {
            usage!(
                "Open MPI 6.0 reads the sections of a classic file shifted by one; write its \
                 rules by --target openmpi-json"
            );
        }
        Ok(Classic { version: VERSIONS.read(version)? })
    }

    /// Whether coll/han comes before coll/tuned.
    fn is_behind_han(&self) -> bool {
        self.version >= han::COMES_FIRST
    }

    /// What goes into the files of coll/tuned and of coll/han. Of two sections of one size coll/han's has the
    /// layout that it takes.
    fn by_component(&self, rules: &[Rules]) -> (Vec<Rules>, Vec<Rules>) {
        let only = |of_han: bool| {
            let is_others =
                |section: &LayoutRanges| han::takes(self.version, section.layout) != of_han;
            let one_per_size = |rules: &Rules| {
                let has_own = |procs| {
                    let same = |own: &&LayoutRanges| own.procs() == procs && !is_others(own);
                    rules.sections.iter().any(|own| same(&own))
                };
                let mut sections = rules.sections.clone();
                sections.retain(|section| !is_others(section) || !has_own(section.procs()));
                Rules { collective: rules.collective, sections }
            };
            rules.iter().map(one_per_size).collect()
        };
        (only(false), only(true))
    }
}

impl Exporter for Classic {
    fn target(&self) -> String {
        format!("Open MPI {}.{}", self.version.0, self.version.1)
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        named(algorithm, segment_bytes)
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        if let Method::Native(native) = method
            && native.library == LIBRARY
            && han::find(point.collective, native.algorithm).is_some()
        {
            return match han::takes(self.version, point.layout) {
                true => Ok(()),
                false => Err(format!("{} runs no {method} on {}", self.target(), point.layout)),
            };
        }
        express(&self.target(), point, method)
    }

    /// What is chosen for two ranks ends below the next number of them.
    fn keeps_from(&self, calls: UnsafeFor) -> bool {
        calls == UnsafeFor::NotTwoRanks
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        algorithms::named(collective)
    }

    fn one_for_all_sizes(&self, collective: Collective) -> Option<&'static str> {
        one_for_all_sizes(collective)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        match collective {
            Collective::Allgatherv if self.version == (4, 0) => Some(ALL_BLOCKS),
            _ => message_size(collective),
        }
    }

    /// From 5.0 on coll/han has a file of its own. What it does not take is left to coll/tuned.
    fn layout_key(&self, layout: Layout) -> LayoutKey {
        let procs = layout.procs();
        match self.is_behind_han() {
            true => LayoutKey::Levels { procs, has_levels: han::takes(self.version, layout) },
            false => LayoutKey::Procs(procs),
        }
    }

    /// What coll/han hands on falls under tuned's rules, which know the number of processes alone.
    fn clash(
        &self,
        collective: Collective,
        one: (Layout, &[&Method]),
        other: (Layout, &[&Method]),
    ) -> bool {
        let stays = |(layout, methods): (Layout, &[&Method])| {
            !han::takes(self.version, layout)
                || methods.iter().all(|method| han::keeps(collective, method))
        };
        !(stays(one) && stays(other))
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let (of_tuned, of_han) = self.by_component(export.rules);
        let mut text = format!("# coll/tuned rules of {}, written by colibri\n", self.target());
        for line in export.comments {
            text += &format!("# {line}\n");
        }
        text += &format!("{} # collectives\n", of_tuned.len());
        for rules in &of_tuned {
            let Some(id) = id(rules.collective) else {
                fail!("Open MPI's rules know no {}", rules.collective);
            };
            let total = self.message_size(rules.collective) == Some(ALL_BLOCKS);
            let one = one_for_all_sizes(rules.collective).is_some();
            let spans = spans(rules, one)?;
            let spans = if total { narrow(spans) } else { spans };
            let size = self.message_size(rules.collective);
            let size = size.unwrap_or_else(|| rules.collective.message_size());
            text += &format!("{id} # {}; message size: {size}\n", rules.collective);
            text += &format!("{} # communicator sizes\n", spans.len() + 2);
            text += "0 1 # smaller than measured: left to the library\n0 0 0 0\n";
            for span in &spans {
                write_section(&mut text, rules.collective, span, total)?;
            }
            let after = spans.last().map_or(1, |span| span.last + 1);
            text += &format!("{after} 1 # larger than measured: left to the library\n0 0 0 0\n");
        }
        let mut files = vec![File { name: String::new(), text }];
        if self.is_behind_han() {
            let export = Export { rules: &of_han, comments: export.comments };
            let text = han_file::text(&export, &self.target())?;
            files.push(File { name: han_file::ENDING.into(), text });
        }
        Ok(files)
    }

    fn environment(&self, file: &str, _: &Export<'_>) -> Option<Vec<(String, String)>> {
        let mut settings = environment(file);
        if self.is_behind_han() {
            settings.extend(han_file::environment(file));
        }
        Some(settings)
    }

    fn how_to_load(&self, file: &str, export: &Export<'_>) -> HowToLoad {
        const ALWAYS: &str = "or for every run";
        if self.is_behind_han() {
            let settings = self.environment(file, export).unwrap_or_default();
            let set = settings.iter().map(|(name, value)| format!(" {name}={value}"));
            let parameter = |(name, value): &(String, String)| {
                let name = name.trim_start_matches("OMPI_MCA_");
                format!("--mca {name} {value} ")
            };
            let parameters = settings.iter().map(parameter);
            let command = format!("mpirun {}...", parameters.collect::<String>());
            return HowToLoad::new(self.target(), command)
                .or(ALWAYS, format!("export{}", set.collect::<String>()));
        }
        let command = format!(
            "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename \
             {file} ..."
        );
        let set = format!(
            "export OMPI_MCA_coll_tuned_use_dynamic_rules=1 \
             OMPI_MCA_coll_tuned_dynamic_rules_filename={file}"
        );
        HowToLoad::new(self.target(), command).or(ALWAYS, set)
    }
}

fn write_section(
    text: &mut String,
    collective: Collective,
    span: &ProcsSpan,
    total: bool,
) -> Result<()> {
    let lines = lines(collective, span, total)?;
    *text += &format!(
        "{} {} # processes, bands: bytes algorithm fan-out segment\n",
        span.first,
        lines.len()
    );
    for (RuleLine { from_bytes, id, fan_out, segment_bytes }, method) in lines {
        let size = quantity::format_bytes(from_bytes);
        let name = method.short();
        *text += &format!("{from_bytes} {id} {fan_out} {segment_bytes} # from {size}: {name}\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
