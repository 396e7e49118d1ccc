//! `colibri decide --candidates`: what the preload library tries first while an application runs.

use std::{fs, path::Path};

use anyhow::Result;
use models::Model;
use records::{
    Collective, FileError, Layout, Method,
    candidates::{CandidateClass, FILE, PredictedCandidate},
    confirmed::sizes,
    document, quantity,
};
use serde::Serialize;
use site::usage;
use stages::{
    candidates::{CandidateRequest, candidates},
    source::CalibrationSource,
};

use super::Decide;
use crate::commands::shared::output;

/// One method at one class of sizes, as a flat row.
#[derive(Serialize)]
struct CandidateRow {
    collective: Collective,
    #[serde(rename = "procs")]
    layout: Layout,
    first_bytes: u64,
    last_bytes: u64,
    method: Method,
    seconds: f64,
    max_seconds: f64,
}

const HEADING: [&str; 6] = ["collective", "procs", "sizes", "method", "predicted", "at most"];

impl Decide {
    pub(super) fn write_candidates(
        &self,
        source: CalibrationSource,
        directory: &Path,
    ) -> Result<()> {
        let model = match self.model.named_models(&source).as_deref() {
            None => Model::Refined,
            Some([model]) => *model,
            Some(_) => usage!("--candidates: name one model, as in --model refined"),
        };
        let layouts = source.layouts(&self.grid.layouts());
        self.grid.check_rows(layouts.len(), self.grid.collective.0.len())?;
        let source = source.with_root(self.root.checked(&self.grid.collective.0, &layouts)?);
        let found = candidates(
            &source,
            &CandidateRequest {
                collectives: &self.grid.collective.0,
                of_all: self.grid.asks_for_all(),
                layouts: &layouts,
                sizes: &self.grid.sizes.0,
                segments: &self.grid.segments.segments,
                model,
            },
        )?;
        fs::create_dir_all(directory)
            .map_err(|error| FileError::io(directory, "make this directory", &error))?;
        let path = directory.join(FILE);
        document::write(&path, &found)?;
        say!("written: {}", path.display());
        let rows: Vec<CandidateRow> = found.classes.iter().flat_map(rows).collect();
        output::rows(self.format, &rows, &HEADING, |row| {
            vec![
                row.collective.to_string(),
                row.layout.to_string(),
                sizes(row.first_bytes, row.last_bytes),
                row.method.to_string(),
                quantity::format_seconds(row.seconds),
                quantity::format_seconds(row.max_seconds),
            ]
        })
    }
}

fn rows(class: &CandidateClass) -> impl Iterator<Item = CandidateRow> {
    class.methods.iter().map(|PredictedCandidate { method, seconds, max_seconds }| CandidateRow {
        collective: class.point.collective,
        layout: class.point.layout,
        first_bytes: class.point.bytes,
        last_bytes: class.last_bytes,
        method: method.clone(),
        seconds: *seconds,
        max_seconds: *max_seconds,
    })
}
