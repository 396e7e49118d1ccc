//! A site that is found and opened when it is needed.

use anyhow::{Context, Result};

use crate::{options::SiteOptions, ranks::Site, run_directory::RunDirectory, where_ranks_run};

/// A site that is found and opened when it is needed: a run whose records are whole needs none.
pub struct LazySite<'a> {
    options: &'a SiteOptions,
    site: Option<Site>,
    is_open: bool,
}

impl<'a> LazySite<'a> {
    /// At the place that the flags name.
    pub fn new(options: &'a SiteOptions) -> Self {
        LazySite { options, site: None, is_open: false }
    }

    /// The site, found at the first time.
    ///
    /// # Errors
    /// As [`Site::find`].
    pub fn find(&mut self) -> Result<&Site> {
        if self.site.is_none() {
            self.site = Some(Site::find(self.options)?);
        }
        self.site.as_ref().context("the site was found")
    }

    /// The site, opened for the run at the first time; what its first job tells is said.
    ///
    /// # Errors
    /// As [`Site::find`], [`Site::open`] and [`Site::first_job`].
    pub fn open(&mut self, run: &RunDirectory) -> Result<&Site> {
        if !self.is_open {
            self.find()?;
            let mut site = self.site.take().context("the site was found")?.open(run)?;
            let is_new = !run.first_job().exists();
            let first_job = site.first_job(run)?;
            if is_new {
                where_ranks_run::tell(&first_job, site.allocation());
            }
            self.site = Some(site);
            self.is_open = true;
        }
        self.site.as_ref().context("the site was opened")
    }
}
