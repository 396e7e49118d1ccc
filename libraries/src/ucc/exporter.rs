//! UCC's two forms: a tune string in the environment, and a configuration file that knows layouts.

use records::{Algorithm, Collective, Layout, Method, Point};

use super::{algorithms, sections, tokens};
use crate::{
    error::Result,
    exporter::{Export, Exporter, File, HowToLoad, LayoutKey, lacks},
    spans::{narrow, spans},
    version::Versions,
};

const VERSIONS: Versions = Versions { target: "UCC", known: &[(1, 3)] };

/// Takes a tune string.
pub const TUNE_VARIABLE: &str = "UCC_TL_UCP_TUNE";
/// Names a configuration file.
pub const FILE_VARIABLE: &str = "UCC_CONFIG_FILE";

#[derive(Clone, Copy, PartialEq)]
pub enum UccForm {
    /// A shell script that sets `UCC_TL_UCP_TUNE`, which holds by the number of processes alone.
    TuneString,
    /// A file of sections, which `UCC_CONFIG_FILE` names.
    Sections,
}

/// Writes for UCC.
pub struct UccExporter(UccForm);

impl UccExporter {
    /// For a version.
    ///
    /// # Errors
    /// The version's algorithms are not known.
    pub fn new(form: UccForm, version: Option<&str>) -> Result<Self> {
        version.map(|version| VERSIONS.read(version)).transpose()?;
        Ok(UccExporter(form))
    }

    fn script(&self, export: &Export<'_>) -> Result<String> {
        let mut all = Vec::new();
        for rules in export.rules {
            let spans = spans(rules, false)?;
            let total = tokens::counts_all_blocks(rules.collective);
            for span in if total { narrow(spans) } else { spans } {
                let teams = Some((span.first, span.last));
                all.extend(tokens::tokens(rules.collective, &span, teams)?);
            }
        }
        let mut text = format!("# Algorithms for {}, written by colibri\n", self.target());
        for line in export.comments {
            text += &format!("# {line}\n");
        }
        Ok(text + &format!("export {TUNE_VARIABLE}='{}'\n", all.join("#")))
    }
}

impl Exporter for UccExporter {
    fn target(&self) -> String {
        "UCC 1.3".into()
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        Method::own(algorithm).with_segment(segment_bytes)
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        let collective = point.collective;
        match method {
            Method::Own(own) if own.is_plain() && own.segment_bytes > 0 => {
                Err(format!("UCC takes no segment size ({method} for {collective})"))
            }
            Method::Own(own)
                if own.is_plain() && algorithms::name(collective, own.algorithm).is_some() =>
            {
                Ok(())
            }
            _ => Err(lacks(&self.target(), collective, method, &algorithms::named(collective))),
        }
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        algorithms::named(collective)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        tokens::message_size(collective)
    }

    /// Sections know the least and the most ranks per node, too; but the range of an uneven layout holds the
    /// even one of as many ranks and nodes.
    fn layout_key(&self, layout: Layout) -> LayoutKey {
        match self.0 {
            UccForm::TuneString => LayoutKey::Procs(layout.procs()),
            UccForm::Sections => LayoutKey::Nodes { procs: layout.procs(), nodes: layout.nodes() },
        }
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let text = match self.0 {
            UccForm::TuneString => self.script(export)?,
            UccForm::Sections => sections::text(export, &self.target())?,
        };
        Ok(vec![File { name: String::new(), text }])
    }

    fn environment(&self, file: &str, _: &Export<'_>) -> Option<Vec<(String, String)>> {
        (self.0 == UccForm::Sections).then(|| vec![(FILE_VARIABLE.into(), file.into())])
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> HowToLoad {
        let (set, variable) = match self.0 {
            UccForm::TuneString => (format!(". {file}"), TUNE_VARIABLE),
            UccForm::Sections => (format!("export {FILE_VARIABLE}={file}"), FILE_VARIABLE),
        };
        let command = format!(
            "{set}, then start the program; in Open MPI: mpirun --mca coll_ucc_enable 1 --mca \
             coll_ucc_priority 100 -x {variable} ..."
        );
        let how = HowToLoad::new("UCC 1.3", command).with_remark(
            "(UCC prints \"failed to parse\" and ignores all of it where a version lacks an algorithm)",
        );
        match self.0 {
            UccForm::TuneString => how,
            UccForm::Sections => how.with_remark(
                "(it stands in for UCC's own share/ucc.conf; if UCC_TL_UCP_TUNE is set, too, the file's \
                 choices are ignored)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Rules, section};

    #[test]
    fn tokens_follow_the_grammar_and_do_not_overlap() {
        let bcast = [(1, "own:k-nomial"), (1000, "default"), (4096, "own:scatter-allgather")];
        let bcast = section("4", &bcast, 8191);
        let allgather = section("4", &[(1, "own:ring")], 99);
        let rules = [(Collective::Bcast, bcast), (Collective::Allgather, allgather)]
            .map(|(collective, section)| Rules { collective, sections: vec![section] });
        let export = Export { rules: &rules, comments: &["x".into()] };
        let exporter = UccExporter::new(UccForm::TuneString, None).unwrap();
        let text = exporter.files(&export).unwrap().remove(0).text;
        let wanted = "# Algorithms for UCC 1.3, written by colibri\n# x\n\
                      export UCC_TL_UCP_TUNE='bcast:1-1000:[4-4]:@knomial#\
                      bcast:4k-8k:[4-4]:@sag_knomial#allgather:4-400:[4-4]:@ring'\n";
        assert_eq!(text, wanted);
        let point = Point::flat(Collective::Bcast, 4, 1);
        let is_refused = |method: &str| exporter.express(point, &method.parse().unwrap()).is_err();
        assert!(is_refused("own:k-nomial,segment=1KiB") && is_refused("own:linear"));
        assert!(UccExporter::new(UccForm::Sections, Some("1.2")).is_err());
    }
}
