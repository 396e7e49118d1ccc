//! What must not be used for some calls, and what a file cannot keep from these.

use libraries::{Danger, Export, Exporter, File, LayoutKey, MpiLibrary, Result, UnsafeFor};
use records::{Algorithm, Collective, Layout, Method, Point};

/// An exporter that leaves out what would be dangerous in its files.
pub struct CarefulExporter {
    exporter: Box<dyn Exporter>,
    library: &'static dyn MpiLibrary,
    /// Whether all operations of the programs that load it are commutative.
    commutative: bool,
}

impl CarefulExporter {
    /// Of a library's exporter.
    pub fn new(
        exporter: Box<dyn Exporter>,
        library: &'static dyn MpiLibrary,
        commutative: bool,
    ) -> Self {
        CarefulExporter { exporter, library, commutative }
    }

    /// What the files cannot keep a method from.
    fn danger(&self, collective: Collective, method: &Method) -> Option<Danger> {
        let Method::Native(native) = method else { return None };
        let of_method = |danger: &Danger| {
            (danger.collective, danger.algorithm) == (collective, native.algorithm)
        };
        let is_declared = |calls| self.commutative && calls == UnsafeFor::NotCommutative;
        self.library.dangers().into_iter().filter(of_method).find(|danger| {
            !self.exporter.keeps_from(danger.unsafe_for) && !is_declared(danger.unsafe_for)
        })
    }
}

impl Exporter for CarefulExporter {
    fn target(&self) -> String {
        self.exporter.target()
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        self.exporter.named(algorithm, segment_bytes)
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        self.exporter.express(point, method)?;
        let Some(danger) = self.danger(point.collective, method) else { return Ok(()) };
        let Danger { collective, algorithm, unsafe_for, damage, source } = danger;
        let advice = match unsafe_for {
            UnsafeFor::NotCommutative => {
                "; --commutative allows it for programs with commutative operations alone"
            }
            _ => "",
        };
        Err(format!(
            "{} {algorithm} of {collective} {damage} {unsafe_for} ({source}){advice}",
            self.library.title()
        ))
    }

    fn keeps_from(&self, calls: UnsafeFor) -> bool {
        self.exporter.keeps_from(calls)
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        self.exporter.algorithms(collective)
    }

    fn one_for_all_sizes(&self, collective: Collective) -> Option<&'static str> {
        self.exporter.one_for_all_sizes(collective)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        self.exporter.message_size(collective)
    }

    fn layout_key(&self, layout: Layout) -> LayoutKey {
        self.exporter.layout_key(layout)
    }

    fn clash(
        &self,
        collective: Collective,
        one: (Layout, &[&Method]),
        other: (Layout, &[&Method]),
    ) -> bool {
        self.exporter.clash(collective, one, other)
    }

    fn is_directory(&self) -> bool {
        self.exporter.is_directory()
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        self.exporter.files(export)
    }

    fn environment(&self, file: &str, export: &Export<'_>) -> Option<Vec<(String, String)>> {
        self.exporter.environment(file, export)
    }

    fn variables(
        &self,
        file: &str,
        export: &Export<'_>,
        ranks: u32,
    ) -> Result<Vec<(String, String)>> {
        self.exporter.variables(file, export, ranks)
    }

    fn how_to_load(&self, file: &str, export: &Export<'_>) -> String {
        self.exporter.how_to_load(file, export)
    }
}

#[cfg(test)]
mod tests {
    use libraries::{mpich::MpichLibrary, openmpi::OpenMpiLibrary};

    use super::*;

    fn said(collective: Collective, method: &str, procs: u32, commutative: bool) -> Option<String> {
        let exporter = (OpenMpiLibrary.formats()[0].exporter)(None, None).unwrap();
        let careful = CarefulExporter::new(exporter, &OpenMpiLibrary, commutative);
        let point = Point::flat(collective, procs, 8192);
        careful.express(point, &method.parse().unwrap()).err()
    }

    #[test]
    fn what_is_wrong_without_commutativity_is_left_out_unless_that_is_declared() {
        let pipeline = "native:openmpi:pipeline,segment=1KiB";
        let why = said(Collective::Reduce, pipeline, 4, false).unwrap();
        assert!(why.contains("wrong results") && why.contains("--commutative"), "{why}");
        assert_eq!(said(Collective::Reduce, pipeline, 4, true), None);
        assert_eq!(said(Collective::Bcast, pipeline, 4, false), None);
        let safe = "native:openmpi:in-order-binary";
        assert_eq!(said(Collective::Reduce, safe, 4, false), None);
        // The file ends what is for two ranks there.
        let two = "native:openmpi:two-procs";
        assert_eq!(said(Collective::Allgather, two, 2, false), None);
        assert!(said(Collective::Allgather, two, 3, false).is_some());
    }

    /// Each danger of a library whose file asks before it runs an algorithm is kept from.
    #[test]
    fn every_danger_is_left_out_or_kept_from() {
        for danger in OpenMpiLibrary.dangers() {
            let is_kept_from = danger.unsafe_for == UnsafeFor::NotTwoRanks;
            let method = format!("native:openmpi:{}", danger.algorithm);
            let procs = if is_kept_from { 2 } else { 4 };
            let why = said(danger.collective, &method, procs, false);
            assert_eq!(why.is_none(), is_kept_from, "{danger:?}: {why:?}");
        }
        assert!(!MpichLibrary.dangers().is_empty());
    }
}
