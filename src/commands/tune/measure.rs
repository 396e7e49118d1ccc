//! Measures: the platform, and then what could still change a decision.

use std::time::{Duration, Instant};

use anyhow::Result;
use models::Model;
use records::{Collective, Root, calibration::Calibration, document, plan::Plan, usage::Usage};
use tuning::plan::{Extent, Grid};

use super::{CALIBRATION_SHARE, LEAST_OF_SHARE, MEASURING_SHARE, Tune};
use crate::commands::shared::calibration;
use site::{lazy::LazySite, ranks::Site, run_directory::RunDirectory, usage};
use stages::{
    bench::ClusterBench,
    calibrating,
    compared::ComparedKinds,
    confirming,
    fitted_trees::with_calibrated_trees,
    focused,
    kinds::MethodKind,
    links,
    measurements::{self, RecordedPlan},
    measuring, memory, natives,
    roots::{self, WantedRoot},
    source::CalibrationSource,
    traced::Traced,
};

impl Tune {
    /// The calibration is written when its measuring is over, so that one that is there is whole.
    pub(super) fn calibrate(&self, run: &RunDirectory, site: &mut LazySite) -> Result<Calibration> {
        if !run.calibration().exists() {
            let site = site.open(run)?;
            let budget = Duration::from_secs_f64(self.share(CALIBRATION_SHARE).min(60.0));
            let wanted = calibrating::CalibrationOptions::within(budget, self.seed);
            calibrating::run_jobs(site, run, &wanted, budget, None)?;
        }
        let calibration = calibrating::fit(run, None, false)?;
        match self.details {
            true => say!("{}", calibration::summary(&calibration).trim_end()),
            false => say!("{}", calibration::brief(&calibration, &run.calibration())),
        }
        Ok(calibration)
    }

    /// Gives what was measured, batch by batch. The penalties are written when the measuring is over.
    pub(super) fn measure(
        &self,
        run: &RunDirectory,
        site: &mut LazySite,
        source: &CalibrationSource,
        roots: &[Root],
        begun: Instant,
    ) -> Result<Vec<RecordedPlan>> {
        if run.penalty().exists() {
            return measurements::batches(run);
        }
        let opened = site.open(run)?;
        if natives::of_site(opened).is_none() {
            say!(
                "plan: Colibri cannot force this MPI library's algorithms: only Colibri's \
                 own methods are measured, for the preload library"
            );
        }
        let usage = self.usage(run)?;
        let mut grid = self.points(usage.as_ref(), opened)?;
        if let Some(usage) = usage {
            let traced = Traced::new(&usage, opened.ranks())?;
            for layout in traced.layouts_without_nodes(opened) {
                say!(
                    "plan: the trace's calls on {layout:#} are left out: the job's ranks are on other nodes"
                );
            }
        }
        memory::limit(&mut grid, run, self.site.memory_share)?;
        grid.methods = with_calibrated_trees(grid.methods, source.predictor(Model::Refined)?);
        links::time_all_links(opened, run, &grid.layouts, self.seed, self.budget())?;
        if !self.exhaustive {
            let share = self.share(MEASURING_SHARE);
            let confirming = self.share(confirming::BUDGET_SHARE);
            let seconds_left = || {
                let left = self.left(begun).unwrap_or(f64::INFINITY) - confirming;
                left.clamp(LEAST_OF_SHARE * share, share)
            };
            let mut bench = ClusterBench::new(run, site, source, roots);
            focused::measure_doubtful(&mut bench, &grid, seconds_left, self.seed)?;
            let batches = bench.batches;
            self.refuse_unmeasured(run, begun)?;
            return Ok(batches);
        }
        let plan =
            measuring::planned(run, source, &grid, Extent::Exhaustive { rounds: 3 }, self.seed)?;
        let deadline = Duration::from_secs(30 * 24 * 3600);
        measuring::run_plan(opened, &plan, &run.plan(), &run.measurements(), deadline, &[])?;
        measurements::batches(run)
    }

    /// The points to tune: the grid that the flags name, or what an application uses.
    pub(super) fn points(&self, usage: Option<&Usage>, site: &Site) -> Result<Grid> {
        let kinds = ComparedKinds::at(site, self.methods.kinds())?;
        if kinds.has(MethodKind::Plugin) {
            usage!("--methods plugin: plug-ins cannot be loaded; `colibri verify` measures them");
        }
        let grid = match usage {
            Some(usage) => {
                let segments = self.grid.segments.sizes().to_vec();
                Traced::new(usage, site.ranks())?.grid(site, &kinds, segments)
            }
            None => self.grid.measured(site, &kinds),
        }?;
        grid.collectives.iter().try_for_each(|&collective| kinds.check_loadable(collective))?;
        Ok(grid)
    }

    /// The roots that take turns, root 0 first.
    ///
    /// # Errors
    /// A job has not one of them.
    pub(super) fn roots(&self, site: &mut LazySite) -> Result<Vec<Root>> {
        let mut roots = vec![Root::default()];
        if self.roots.0 != [WantedRoot::ZERO] {
            roots.extend(roots::beside_zero(&self.roots.0, site.find()?.ranks(), self.seed)?);
        }
        Ok(roots)
    }

    /// Whether other roots than 0 mean anything.
    ///
    /// # Errors
    /// They don't.
    pub(super) fn check_roots(&self, collectives: &[Collective]) -> Result<()> {
        roots::check_wanted(&self.roots.0, collectives)?;
        if self.exhaustive && self.roots.0 != [WantedRoot::ZERO] {
            usage!(
                "--exhaustive measures only root 0; `colibri verify --roots` measures everything with other roots, too"
            );
        }
        Ok(())
    }

    /// What the application uses, if that is tuned.
    fn usage(&self, run: &RunDirectory) -> Result<Option<Usage>> {
        Ok(self.is_traced().then(|| document::read(&run.usage())).transpose()?)
    }

    fn is_traced(&self) -> bool {
        self.trace.is_some() || self.runs_application()
    }

    /// As what is measured was planned.
    pub(super) fn traced_as_planned(&self, run: &RunDirectory) -> Result<Option<Traced>> {
        let plan: Plan = document::read(&run.plan())?;
        self.usage(run)?.map(|usage| Traced::new(&usage, plan.ranks)).transpose()
    }
}
