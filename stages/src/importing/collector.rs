//! Takes what a tool finds and writes it as a run's records.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use import::{ImportedCall, Job, Made, PairExchange, RowLeftOut, Sink, Summary};
use records::{
    FileError, Layout, Method, Point,
    imported::{OtherStatistic, PairStreams},
    observation::{CollectiveCall, ObservationStatus},
    plan::Cell,
    record::BulkWriter,
};

use super::{
    batch::{ImportedJob, REPETITIONS, header, write_plans},
    layouts::{self, FoundLayouts},
    wanted::{Imported, WantedMethods, WantedRows},
};
use crate::measurements;
use site::run_directory::RunDirectory;

/// Records that are open at the same time.
const MAX_OPEN: usize = 64;
/// More jobs are distinguished by a mistake.
const MAX_JOBS: usize = 10_000;
/// More visits do not fit a plan that is read whole.
const MAX_VISITS: usize = 2_000_000;

pub struct Collector<'a> {
    run: &'a RunDirectory,
    title: &'static str,
    wanted: WantedRows,
    /// The file being read.
    file: PathBuf,
    jobs: Vec<ImportedJob>,
    by_name: HashMap<String, usize>,
    current: usize,
    /// Where the ranks of the rows being read lay, where that is given: of a job, or of a part of one.
    nodes: Option<Layout>,
    cells: HashMap<Cell, u32>,
    in_order: Vec<Cell>,
    last_cell: u32,
    layouts: FoundLayouts,
    /// What all times are.
    statistic: Option<&'static str>,
    others: Option<BulkWriter<OtherStatistic>>,
    streams: Option<BulkWriter<PairStreams>>,
    imported: Imported,
    notes: BTreeSet<String>,
    /// Rows that were left out of each file, and the line of the first.
    left_out: BTreeMap<(PathBuf, RowLeftOut), (u64, u64)>,
    visits: usize,
    /// Jobs that have a record.
    records: usize,
}

impl<'a> Collector<'a> {
    pub fn new(run: &'a RunDirectory, title: &'static str, wanted: WantedRows) -> Self {
        Collector {
            run,
            title,
            wanted,
            file: PathBuf::new(),
            jobs: Vec::new(),
            by_name: HashMap::new(),
            current: 0,
            nodes: None,
            cells: HashMap::new(),
            in_order: Vec::new(),
            last_cell: 0,
            layouts: FoundLayouts::default(),
            statistic: None,
            others: None,
            streams: None,
            imported: Imported::default(),
            notes: BTreeSet::new(),
            left_out: BTreeMap::new(),
            visits: 0,
            records: 0,
        }
    }

    /// What follows is of this file.
    pub fn file(&mut self, path: &Path) {
        path.clone_into(&mut self.file);
    }

    fn fault(&self, line: u64, field: &str, problem: impl Into<String>) -> FileError {
        FileError::new(&self.file, problem).at_line(line).in_field(field)
    }

    /// All is read: closes the records and writes the plans.
    pub fn finish(mut self) -> Result<Imported> {
        for job in &mut self.jobs {
            job.close()?;
        }
        if let Some(others) = self.others.take() {
            others.finish()?;
        }
        if let Some(streams) = self.streams.take() {
            streams.finish()?;
        }
        let left_out = self.left_out_warnings();
        if self.imported.calls + self.imported.exchanges == 0 {
            if let Some(wanted) = self.wanted.layouts.as_ref().filter(|_| left_out.is_empty()) {
                let wanted = layouts::in_words(wanted);
                match self.layouts.all() {
                    none if none.is_empty() => bail!(
                        "no job is known to have run on {wanted}: the files do not say on which nodes; leave out \
                         --only-layouts, or say it by --layouts"
                    ),
                    all => bail!("no job ran on {wanted}; the files have {all}"),
                }
            }
            if !left_out.is_empty() {
                bail!("no row is left: {}", left_out.join("; "));
            }
            bail!(
                "the files hold no such measurements; check --from, and leave out --library-only if it was given"
            );
        }
        self.imported.jobs = self.jobs.iter().filter(|job| job.is_used).count();
        self.imported.notes.extend(self.notes.iter().cloned());
        self.imported.notes.extend(left_out);
        if let Some(wanted) = &self.wanted.layouts {
            self.imported.notes.extend(self.layouts.left_out(wanted));
        }
        self.imported.notes.extend(self.single_jobs());
        if self.imported.calls > 0 {
            let mut numbered = self.jobs;
            numbered.retain(|job| job.number > 0);
            numbered.sort_by_key(|job| job.number);
            let visits = numbered.into_iter().map(|job| job.visits).collect();
            write_plans(self.run, &self.in_order, visits)?;
        }
        Ok(self.imported)
    }

    /// What is reported of the rows that were left out.
    fn left_out_warnings(&self) -> Vec<String> {
        let warnings = self.left_out.iter().map(|((file, why), (first, count))| {
            let more = match count - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{}, line {first}{more}: {why}", file.display())
        });
        warnings.collect()
    }

    /// Where a summary's cells were each measured by one job alone.
    fn single_jobs(&self) -> Option<String> {
        self.statistic.filter(|statistic| *statistic != REPETITIONS)?;
        let mut visits: HashMap<u32, u32> = HashMap::new();
        for visit in self.jobs.iter().flat_map(|job| &job.visits) {
            *visits.entry(visit.cell).or_default() += 1;
        }
        let single = visits.values().filter(|count| **count == 1).count();
        (single > 0).then(|| {
            format!(
                "{single} of {} have one summary of one job: the best method there is chosen and judged by \
                 the same data, so that its penalty is told too small",
                records::counted(visits.len(), "cell")
            )
        })
    }

    /// The index of a cell, new or known. Rows of one cell follow each other.
    fn cell(&mut self, point: Point, method: &Method) -> u32 {
        let is_same = self
            .in_order
            .get(self.last_cell as usize)
            .is_some_and(|cell| (cell.point, &cell.method) == (point, method));
        if !is_same {
            let cell = Cell { point, method: method.clone() };
            let next = self.in_order.len() as u32;
            self.last_cell = *self.cells.entry(cell.clone()).or_insert(next);
            if self.last_cell == next {
                self.in_order.push(cell);
            }
        }
        self.last_cell
    }

    /// What of a job is not to be compared with the first one, of this file or another.
    fn check_beside_first(&self, line: u64, job: &Job) -> Result<(), FileError> {
        let Some(first) = self.jobs.first().map(|first| &first.job) else { return Ok(()) };
        let (system, before) = (job.system.as_str(), first.system.as_str());
        if ![system, before].contains(&"") && system != before {
            let problem = format!(
                "is {system} after {before}; expected one cluster: import each into a run of its own"
            );
            return Err(self.fault(line, "system", problem));
        }
        let in_words = |job: &Job| match job.memory.as_str() {
            "" => "in the host's memory".to_owned(),
            memory => format!("in memory of {memory}"),
        };
        if job.memory != first.memory {
            let (these, those) = (in_words(job), in_words(first));
            let problem = format!(
                "buffers of this job are {these}, those of the first job {those}; expected one memory: import each \
                 into a run of its own"
            );
            return Err(self.fault(line, "", problem));
        }
        Ok(())
    }

    /// What of a call contradicts what was read before.
    fn check(&mut self, line: u64, call: &ImportedCall<'_>) -> Result<(), FileError> {
        let statistic = match &call.made {
            Made::Repetition(_) => REPETITIONS,
            Made::Summary(summary) => summary.statistic,
        };
        let before = *self.statistic.get_or_insert(statistic);
        match before == statistic {
            true => Ok(()),
            false => {
                let problem = format!(
                    "is the {statistic}, but an earlier row has the {before}; times are compared by \
                     one statistic: import the others into a run of their own"
                );
                Err(self.fault(line, "statistic", problem))
            }
        }
    }

    fn keep_others(&mut self, call: &ImportedCall<'_>, summary: &Summary) -> Result<(), FileError> {
        if summary.others.is_empty() {
            return Ok(());
        }
        let writer = match &mut self.others {
            Some(writer) => writer,
            none => none.insert(BulkWriter::create(&self.run.statistics(), &BTreeMap::new())?),
        };
        for (statistic, seconds) in &summary.others {
            writer.append(&OtherStatistic {
                job: self.jobs[self.current].number as u32,
                point: self.in_order[self.last_cell as usize].point,
                method: call.method.clone(),
                repetitions: summary.repetitions,
                statistic: (*statistic).to_owned(),
                seconds: *seconds,
                status: call.status,
            })?;
        }
        Ok(())
    }

    /// Closes all records where too many are open for one more.
    fn make_room(&mut self) -> Result<(), FileError> {
        if self.jobs[self.current].is_open() {
            return Ok(());
        }
        if self.jobs.iter().filter(|job| job.is_open()).count() >= MAX_OPEN {
            self.jobs.iter_mut().try_for_each(ImportedJob::close)?;
        }
        Ok(())
    }

    /// Where the ranks of a row of the current job lay; nothing where it is not wanted.
    ///
    /// # Errors
    /// No job was given, or it cannot have had so many ranks.
    fn layout(&mut self, line: u64, procs: Option<u32>) -> Result<Option<Layout>, FileError> {
        let file = &self.file;
        let fault = |field: &str, problem: String| {
            FileError::new(file, problem).at_line(line).in_field(field)
        };
        if self.jobs.is_empty() {
            return Err(fault("", "stands before the beginning of any job".into()));
        }
        let wanted = self.wanted.layouts.as_deref();
        let procs = procs.or(self.nodes.map(Layout::procs)).unwrap_or_default();
        self.layouts.take(procs, self.nodes, wanted, fault)
    }
}

impl Sink for Collector<'_> {
    fn job(&mut self, line: u64, job: &Job) -> Result<(), FileError> {
        self.check_beside_first(line, job)?;
        self.nodes = job.nodes;
        if let Some(&known) = self.by_name.get(&job.name) {
            self.current = known;
            let before = &self.jobs[known].job;
            return match *before == (Job { nodes: before.nodes, ..job.clone() }) {
                true => Ok(()),
                false => {
                    let problem = format!(
                        "{} is given twice with different libraries or settings",
                        records::quoted(&job.name)
                    );
                    Err(self.fault(line, "job", problem))
                }
            };
        }
        if self.jobs.len() == MAX_JOBS {
            return Err(self.fault(
                line,
                "job",
                format!("more than {MAX_JOBS} jobs; import them in parts"),
            ));
        }
        if let Some(other) = self.jobs.first().map(|first| &first.job.library)
            && *other != job.library
        {
            let note = format!(
                "jobs of several MPI libraries ({other}, {}) are compared as those of one; import each library \
                 into a run of its own",
                job.library
            );
            self.note(&note);
        }
        self.current = self.jobs.len();
        self.by_name.insert(job.name.clone(), self.current);
        self.jobs.push(ImportedJob::new(job.clone()));
        Ok(())
    }

    fn call(&mut self, line: u64, call: &ImportedCall<'_>) -> Result<(), FileError> {
        if self.wanted.methods == WantedMethods::OfLibrary && !call.of_library {
            self.note("methods that are not the library's are left out");
            return Ok(());
        }
        if call.seconds <= 0.0 {
            self.left_out(line, RowLeftOut::Zero);
            return Ok(());
        }
        let Some(layout) = self.layout(line, Some(call.procs))? else { return Ok(()) };
        self.check(line, call)?;
        let cell = self.cell(Point::new(call.collective, layout, call.bytes), call.method);
        self.make_room()?;
        let repetition = match &call.made {
            Made::Repetition(repetition) => *repetition,
            Made::Summary(_) => Some(0),
        };
        let next = self.records + 1;
        let batch = &mut self.jobs[self.current];
        batch.is_used = true;
        if batch.number == 0 {
            // Numbered where it times a collective: a run's records have no gaps.
            batch.number = next;
            batch.path = measurements::files(self.run, next).record;
            self.records = next;
        }
        let before = batch.visits.len();
        let (visit, repetition) = batch.place(cell, repetition);
        self.visits += batch.visits.len() - before;
        let row = CollectiveCall {
            visit,
            repetition,
            status: call.status,
            ..CollectiveCall::timed(&self.in_order[cell as usize], call.seconds)
        };
        let (title, file) = (self.title, &self.file);
        let ranks = batch.job.nodes.map_or(call.procs, Layout::procs);
        let header = |job: &Job| header(job, title, file, ranks, &call.made);
        batch.append(&row, header)?;
        if self.visits > MAX_VISITS {
            let problem = match &call.made {
                Made::Repetition(_) => format!(
                    "more than {MAX_VISITS} changes between cells; sort the rows by collective, \
                     method, procs and bytes"
                ),
                Made::Summary(_) => format!(
                    "more than {MAX_VISITS} summaries; import the files in parts, each into a run \
                     of its own"
                ),
            };
            return Err(self.fault(line, "", problem));
        }
        self.imported.calls += 1;
        match &call.made {
            Made::Summary(summary) => self.keep_others(call, summary),
            Made::Repetition(_) => Ok(()),
        }
    }

    fn exchange(&mut self, line: u64, exchange: &PairExchange) -> Result<(), FileError> {
        if exchange.seconds <= 0.0 {
            self.left_out(line, RowLeftOut::Zero);
            return Ok(());
        }
        if self.layout(line, None)?.is_none() {
            return Ok(());
        }
        if let Some(job) = self.nodes
            && self.layouts.share_a_node(exchange.pairs, exchange.is_of_first, job)
        {
            self.left_out(line, RowLeftOut::SameNode);
            return Ok(());
        }
        self.jobs[self.current].is_used = true;
        let writer = match &mut self.streams {
            Some(writer) => writer,
            none => {
                let job = &self.jobs[self.current].job;
                let ranks = job.nodes.map_or(exchange.pairs.saturating_mul(2), Layout::procs);
                let made = Made::Summary(exchange.summary.clone());
                let header = header(job, self.title, &self.file, ranks, &made);
                none.insert(BulkWriter::create(&self.run.pair_streams(), &header)?)
            }
        };
        self.imported.exchanges += 1;
        writer.append(&PairStreams {
            direction: exchange.direction,
            pairs: exchange.pairs,
            bytes: exchange.bytes,
            messages: exchange.messages,
            job: self.current as u32 + 1,
            statistic: exchange.summary.statistic.to_owned(),
            seconds: exchange.seconds,
            status: ObservationStatus::Ok,
        })
    }

    fn left_out(&mut self, line: u64, why: RowLeftOut) {
        let (_, count) = self.left_out.entry((self.file.clone(), why)).or_insert((line, 0));
        *count += 1;
    }

    fn note(&mut self, text: &str) {
        if !self.notes.contains(text) {
            self.notes.insert(text.to_owned());
        }
    }
}
