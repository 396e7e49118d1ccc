//! What must not be used for some calls, and what a file cannot keep from these.

use std::ops::Deref;

use libraries::{Danger, Exporter, MpiLibrary, UnsafeFor};
use records::{Method, Point};

/// An exporter, and what its files must not name.
pub struct CarefulExporter {
    exporter: Box<dyn Exporter>,
    /// The dangers of a library's algorithms from which its files cannot keep calls, and its name.
    dangers: Vec<Danger>,
    title: &'static str,
}

impl CarefulExporter {
    /// `library` loads the files, where one does; `commutative` says that all operations of the programs that load them
    /// are.
    pub fn new(
        exporter: Box<dyn Exporter>,
        library: Option<&dyn MpiLibrary>,
        commutative: bool,
    ) -> Self {
        let mut dangers = library.map(MpiLibrary::dangers).unwrap_or_default();
        dangers.retain(|Danger { unsafe_for, .. }| {
            let is_declared = commutative && *unsafe_for == UnsafeFor::NotCommutative;
            !exporter.keeps_from(*unsafe_for) && !is_declared
        });
        CarefulExporter { exporter, dangers, title: library.map_or("", MpiLibrary::title) }
    }

    /// Whether the files may name a method at a point: the target can express it, and it is right for every call
    /// that would run it.
    ///
    /// # Errors
    /// Why not.
    pub fn allows(&self, point: Point, method: &Method) -> Result<(), String> {
        self.exporter.express(point, method)?;
        let Method::Native(native) = method else { return Ok(()) };
        let is_it = |danger: &&Danger| {
            (danger.collective, danger.algorithm) == (point.collective, native.algorithm)
        };
        let Some(danger) = self.dangers.iter().find(is_it) else { return Ok(()) };
        let Danger { collective, algorithm, unsafe_for, damage, source } = danger;
        let advice = match unsafe_for {
            UnsafeFor::NotCommutative => {
                "; --commutative allows it for programs with commutative operations alone"
            }
            _ => "",
        };
        Err(format!(
            "{} {algorithm} of {collective} {damage} {unsafe_for} ({source}){advice}",
            self.title
        ))
    }
}

impl Deref for CarefulExporter {
    type Target = dyn Exporter;

    fn deref(&self) -> &Self::Target {
        self.exporter.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use libraries::{mpich::MpichLibrary, openmpi::OpenMpiLibrary};
    use records::Collective;

    use super::*;

    fn said(collective: Collective, method: &str, procs: u32, commutative: bool) -> Option<String> {
        let exporter = (OpenMpiLibrary.formats()[0].exporter)(None, None).unwrap();
        let careful = CarefulExporter::new(exporter, Some(&OpenMpiLibrary), commutative);
        let point = Point::flat(collective, procs, 8192);
        careful.allows(point, &method.parse().unwrap()).err()
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
