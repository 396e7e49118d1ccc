//! What has to be timed: both sides of every guideline.

use std::collections::BTreeSet;

use anyhow::Result;
use records::{Collective, Layout, Method, Point, plan::Cell};
use runner::{
    Runnable,
    mockups::{self, Limits},
};
use verification::patterns::PatternGuideline;

use super::Guidelines;
use crate::commands::shared::options::is_all;
use site::{ranks::Site, usage};
use stages::{compared::ComparedKinds, guideline_file, kinds::MethodKind};

/// Whether what Colibri carries out can be carried out.
fn runnable(point: Point, method: &Method, limits: Limits) -> Result<(), String> {
    let checked = Runnable::new(point.collective, method).and_then(|ours| match ours {
        Some(ours) => ours.check(point.procs(), point.bytes, limits),
        None => Ok(()),
    });
    checked.map_err(|error| error.to_string())
}

impl Guidelines {
    /// The default and what it is compared with, and a barrier to compare gains with.
    pub(super) fn cells(&self, site: &Site) -> Result<Vec<Cell>> {
        let layouts = self.points.layouts(site)?;
        if let Some(path) = &self.guidelines {
            return self.cells_of(&guideline_file::read(path)?, &layouts, site.limits);
        }
        let with_mockups = || {
            let mut all: Vec<Collective> = mockups::ALL.iter().map(|m| m.collective).collect();
            all.dedup();
            all
        };
        let kinds = ComparedKinds::at(site, Some(&self.methods.0))?;
        let collectives = match &self.collective {
            Some(asked) if is_all(&asked.0) => kinds.measurable(&asked.0)?,
            Some(asked) => asked.0.clone(),
            None => with_mockups(),
        };
        let plugins = self.plugins.methods(&collectives)?;
        let mut cells = Vec::new();
        for &layout in &layouts {
            let barrier = Collective::Barrier;
            cells.push(Cell { point: Point::new(barrier, layout, 0), method: Method::Default });
            for &collective in collectives.iter().filter(|&&collective| collective != barrier) {
                for &bytes in &self.points.sizes.0 {
                    let point = Point { collective, layout, bytes };
                    let methods = self.compared(&kinds, point);
                    let plugins = plugins.iter().filter(|(of, _)| *of == collective);
                    let plugins = plugins.map(|(_, method)| method.clone());
                    let methods = std::iter::once(Method::Default).chain(methods).chain(plugins);
                    cells.extend(methods.map(|method| Cell { point, method }));
                }
            }
        }
        Ok(cells)
    }

    /// Both sides of the user's guidelines, each cell once.
    fn cells_of(
        &self,
        rules: &[PatternGuideline],
        layouts: &[Layout],
        limits: Limits,
    ) -> Result<Vec<Cell>> {
        let (mut cells, mut seen) = (Vec::new(), BTreeSet::new());
        let mut add = |point: Point, method: Method| {
            if seen.insert((point, method.clone())) {
                cells.push(Cell { point, method });
            }
        };
        for &layout in layouts {
            add(Point { collective: Collective::Barrier, layout, bytes: 0 }, Method::Default);
            for rule in rules {
                let sizes = if rule.sizes.is_empty() { &self.points.sizes.0 } else { &rule.sizes };
                for &bytes in sizes {
                    let point = Point { collective: rule.collective, layout, bytes };
                    if !rule.is_at(point) {
                        continue;
                    }
                    let terms = rule.terms(point);
                    let runnable =
                        terms.iter().map(|(point, method)| runnable(*point, method, limits));
                    match runnable.collect::<Result<Vec<()>, String>>() {
                        Ok(_) => {
                            add(point, Method::Default);
                            terms.into_iter().for_each(|(point, method)| add(point, method));
                        }
                        Err(why) => {
                            say!("plan: {rule} skipped at {bytes} bytes on {layout}: {why}")
                        }
                    }
                }
            }
        }
        if cells.iter().all(|cell| cell.point.collective == Collective::Barrier) {
            usage!(
                "none of the guidelines can be measured on these ranks; see their procs and sizes, or \
                 give other --procs"
            );
        }
        Ok(cells)
    }

    /// The methods that the default is compared with.
    fn compared(&self, kinds: &ComparedKinds, point: Point) -> Vec<Method> {
        let Point { collective, bytes, .. } = point;
        let procs = point.procs();
        for mockup in mockups::of_collective(collective).filter(|_| kinds.has(MethodKind::Mockup)) {
            if let Err(reason) = kinds.limits.allow(mockup, procs, bytes) {
                say!("plan: skipped at {bytes} bytes on {procs} ranks: {reason}");
            }
        }
        kinds.methods_at(point, &self.segments.0)
    }
}
