//! The kinds of methods that the default is compared with.

use anyhow::Result;
use records::{Algorithm, Collective, Method, Point, profile::REPLACED};
use runner::mockups;
use tuning::plan::MethodsOf;

use crate::{
    error::usage,
    site::{programs, ranks::Site},
    stages::{
        kinds::MethodKind,
        natives::{self, Natives},
        options::is_all,
    },
};

/// What is compared at a site.
#[derive(Debug, Clone)]
pub struct ComparedKinds {
    natives: Option<Natives>,
    kinds: Vec<MethodKind>,
}

impl ComparedKinds {
    /// Of the kinds that are asked for; where none is, the library's own, and Colibri's too where these
    /// are not the very same algorithms.
    ///
    /// # Errors
    /// The library's own are asked for and cannot be forced.
    pub fn at(site: &Site, asked: Option<&[MethodKind]>) -> Result<Self> {
        let natives = natives::of(site);
        let kinds = match (asked, natives) {
            // All that there are here.
            (Some(asked), None) if *asked == MethodKind::ALL => asked[1..].to_vec(),
            (Some(asked), _) => asked.to_vec(),
            (None, None) => vec![MethodKind::Own],
            (None, Some(natives)) if natives.library.has_all_of_ours() => vec![MethodKind::Native],
            (None, Some(_)) => vec![MethodKind::Native, MethodKind::Own],
        };
        if natives.is_none() && kinds.contains(&MethodKind::Native) {
            // One that does not start tells why.
            programs::library(&site.program()?)?;
            let able: Vec<&str> = libraries::ALL.iter().map(|library| library.title()).collect();
            usage!(
                "--methods native: the MPI library here is not known to be one whose algorithms can be \
                 forced ({})",
                able.join(", ")
            );
        }
        Ok(ComparedKinds { natives, kinds })
    }

    /// Whether methods of a kind are compared.
    pub fn has(&self, kind: MethodKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// The library's own, where they are compared.
    pub fn natives(&self) -> Option<Natives> {
        self.natives.filter(|_| self.has(MethodKind::Native))
    }

    /// At a point, beside the default and plug-ins.
    pub fn methods_at(&self, point: Point, segments: &[u64]) -> Vec<Method> {
        let Point { collective, layout, bytes } = point;
        let procs = layout.procs();
        let mut methods = Vec::new();
        if let Some(natives) = self.natives() {
            methods.extend(natives.at(point, segments));
        }
        if self.has(MethodKind::Own) {
            methods.extend(own_methods(collective, segments, procs, bytes));
        }
        if self.has(MethodKind::Mockup) {
            let limits = mockups::Limits::default();
            let all = mockups::of_collective(collective);
            let allowed = all.filter(|mockup| limits.allow(mockup, procs, bytes).is_ok());
            methods.extend(allowed.map(|mockup| Method::Mockup(mockup.name.into())));
        }
        methods
    }

    /// The same for a grid.
    pub fn methods(self) -> MethodsOf {
        MethodsOf::new(move |collective, segments, procs, bytes| {
            self.methods_at(Point::flat(collective, procs, bytes), segments)
        })
    }

    /// The collectives to measure: those asked for, or where these are all that there are, those of which
    /// there is anything to compare.
    ///
    /// # Errors
    /// There is nothing to compare with the default of one that was asked for.
    pub fn measurable(&self, asked: &[Collective]) -> Result<Vec<Collective>> {
        if !is_all(asked) {
            asked.iter().try_for_each(|&collective| self.check(collective))?;
            return Ok(asked.to_vec());
        }
        Ok(asked.iter().copied().filter(|&collective| self.check(collective).is_ok()).collect())
    }

    /// Whether there is anything to compare a collective's default with that could be loaded.
    ///
    /// # Errors
    /// There is nothing.
    fn check(&self, collective: Collective) -> Result<()> {
        let natives = self.natives().map(|natives| natives.library);
        let has_natives = natives.is_some_and(|of| !of.algorithms(collective).is_empty());
        let others = [MethodKind::Own, MethodKind::Mockup].into_iter().any(|kind| self.has(kind));
        if has_natives || (others && REPLACED.contains(&collective)) || self.has(MethodKind::Plugin)
        {
            return Ok(());
        }
        match natives {
            Some(library) if !others => {
                usage!("{} has no algorithms of {collective} that can be forced", library.title())
            }
            Some(library) => usage!(
                "{} has no algorithms of {collective} that can be forced, and the preload library \
                 replaces no calls of it; nothing could be loaded",
                library.title()
            ),
            None => usage!(
                "not known to be an MPI library whose algorithms can be forced, and the preload library \
                 replaces no calls of {collective}; nothing could be loaded"
            ),
        }
    }
}

/// Our own algorithms of a collective on so many processes: each with every segment size that is
/// less than the message, those without segments once. Of several forms of an algorithm, the plain
/// one.
pub fn own_methods(
    collective: Collective,
    segments: &[u64],
    procs: u32,
    bytes: u64,
) -> Vec<Method> {
    let mut methods = Vec::new();
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| algorithm.plain().is_none()) {
        let method = |segment_bytes| runner::OwnMethod::new(collective, algorithm, segment_bytes);
        let segments: &[u64] = if method(1).is_ok() { segments } else { &[0] };
        for &segment_bytes in segments.iter().filter(|&&segment| segment == 0 || segment < bytes) {
            if method(segment_bytes).is_ok_and(|method| method.check_ranks(procs).is_ok()) {
                methods.push(Method::Own { algorithm, segment_bytes });
            }
        }
    }
    methods
}
