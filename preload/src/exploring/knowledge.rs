//! What is known from other jobs, and what is kept of this one.
//!
//! The first process of the world alone reads and writes the directory, so that all have the same, and no file is
//! asked for by a thousand nodes. A communicator gets what its rank 0 knows of its layout when it is first used: what
//! the directory told, and what this job has shown since.

use std::{
    collections::HashMap,
    ffi::{c_int, c_void},
    fs,
    path::PathBuf,
    ptr,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::{Duration, Instant},
};

use choosing::exploring::{Account, CallClass, Candidate};
use records::{
    Collective, Layout, Method, counted,
    learned::{self, Learned, LearnedClass},
    quantity,
};
use runner::{Handle, Runnable};
use serde::{Deserialize, Serialize};

use super::CommunicatorExplorer;
use crate::{
    choice::replacement, job::JobContext, lock::lock, report, say::say, settings::ExploringSettings,
};

/// What was learned is kept so often, for a job that does not reach `MPI_Finalize`.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// Exploring in this job.
pub struct Exploring {
    pub budget: f64,
    /// Whether each call gets the next method, whatever it costs.
    pub by_turns: bool,
    directory: PathBuf,
    is_reported: bool,
    library: String,
    /// What the directory told, the same on all processes; nothing where it can't be used.
    known: OnceLock<Option<Learned>>,
    /// Made once per process: a trace takes their addresses for them, after the communicator is freed, too.
    runnables: Mutex<HashMap<(Collective, Method), Option<&'static Runnable>>>,
    live: Mutex<Vec<Weak<CommunicatorExplorer>>>,
    ended: Mutex<JobKnowledge>,
    /// When this process last wrote; of the world's first alone.
    kept: Mutex<Option<Instant>>,
}

/// What one process knows of the communicators of which it is rank 0.
#[derive(Default, Serialize, Deserialize)]
struct JobKnowledge {
    classes: Vec<LearnedClass>,
    /// Seconds in collectives, gained and spent, summed over the ranks.
    collectives: f64,
    gained: f64,
    spent: f64,
}

impl JobKnowledge {
    fn add(&mut self, classes: Vec<LearnedClass>, account: Account) {
        learned::merge_classes(&mut self.classes, &classes);
        self.collectives += account.collectives;
        self.gained += account.gained;
        self.spent += account.spent;
    }
}

impl Exploring {
    /// `library`: the MPI library and its version.
    pub fn new(settings: &ExploringSettings, library: String) -> Self {
        Exploring {
            budget: settings.budget,
            by_turns: settings.by_turns,
            directory: settings.directory.clone(),
            is_reported: settings.is_reported,
            library,
            known: OnceLock::new(),
            runnables: Mutex::default(),
            live: Mutex::default(),
            ended: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Whether methods are explored: the directory can be used.
    pub fn is_on(&self) -> bool {
        matches!(self.known.get(), Some(Some(_)))
    }

    /// Reads what other jobs have left, on the first process, and hands it to all. What went wrong is printed.
    ///
    /// # Safety
    /// `comm` must be a live communicator of all processes of the world, which all do this.
    pub unsafe fn begin(&self, job: &JobContext, comm: Handle, is_first: bool) {
        let own = is_first.then(|| {
            let processor = processor();
            let read = fs::create_dir_all(&self.directory)
                .map_err(|error| records::FileError::io(&self.directory, "create", &error))
                .and_then(|()| learned::read(&self.directory, &self.library, &processor));
            match read {
                Ok(known) => Some(known.unwrap_or_else(|| Learned::new(self.library.clone(), processor))),
                Err(why) => {
                    say(&format!("COLIBRI_ADAPT: {why}; nothing is tried, and the application runs as without it"));
                    None
                }
            }
        });
        let text = serde_json::to_vec(&own.flatten()).unwrap_or_default();
        // SAFETY: all processes are here (contract of this function).
        let text = unsafe { broadcast(job, comm, text) };
        let known = serde_json::from_slice(&text).unwrap_or_default();
        let _ = self.known.set(known);
        if is_first {
            *lock(&self.kept) = Some(Instant::now());
        }
        for explorer in self.living() {
            explorer.set_known(self.known_of(explorer.layout()));
        }
    }

    /// One more communicator, of which this rank 0 or another one knows something.
    ///
    /// # Safety
    /// `ours` must be the explorer's communicator, all of whose ranks do this.
    pub unsafe fn add(&self, job: &JobContext, ours: Handle, explorer: &Arc<CommunicatorExplorer>) {
        lock(&self.live).push(Arc::downgrade(explorer));
        // The world comes first, before anything is known.
        if self.known.get().is_some() {
            let known = match explorer.rank {
                0 => serde_json::to_vec(&self.known_of(explorer.layout())).unwrap_or_default(),
                _ => Vec::new(),
            };
            // SAFETY: `ours` is live, and all its ranks are here (contract of this function).
            let known = unsafe { broadcast(job, ours, known) };
            explorer.set_known(serde_json::from_slice(&known).unwrap_or_default());
        }
    }

    /// A communicator is freed.
    pub fn end(&self, explorer: &CommunicatorExplorer) {
        if explorer.rank == 0 {
            lock(&self.ended).add(explorer.learned(), explorer.account());
        }
        lock(&self.live)
            .retain(|live| live.strong_count() > 0 && !ptr::eq(live.as_ptr(), explorer));
    }

    /// What carries out a method; nothing where it can't be had.
    pub fn runnable(&self, collective: Collective, method: &Method) -> Option<&'static Runnable> {
        let mut known = lock(&self.runnables);
        *known.entry((collective, method.clone())).or_insert_with(|| {
            let made = replacement(collective, method).ok()?;
            Some(&*Box::leak(Box::new(made)))
        })
    }

    /// What has been ranked for a class, best first.
    pub fn ranked(&self, _class: CallClass, _layout: Layout) -> Vec<Candidate> {
        Vec::new()
    }

    pub fn living(&self) -> Vec<Arc<CommunicatorExplorer>> {
        lock(&self.live).iter().filter_map(Weak::upgrade).collect()
    }

    /// What this process knows of a layout: from other jobs, and from this one.
    fn known_of(&self, layout: Layout) -> Vec<LearnedClass> {
        let mut known = match self.known.get() {
            Some(Some(known)) => known.classes.clone(),
            _ => Vec::new(),
        };
        learned::merge_classes(&mut known, &self.of_this_process().classes);
        known.retain(|class| class.point.layout == layout);
        known
    }

    /// What this process has learned of the communicators of which it is rank 0.
    fn of_this_process(&self) -> JobKnowledge {
        let mut all = JobKnowledge::default();
        for explorer in self.living().iter().filter(|explorer| explorer.rank == 0) {
            all.add(explorer.learned(), explorer.account());
        }
        let ended = lock(&self.ended);
        let JobKnowledge { collectives, gained, spent, .. } = *ended;
        all.add(ended.classes.clone(), Account { collectives, gained, spent, budget: 0.0 });
        all
    }

    fn document(&self, classes: Vec<LearnedClass>) -> Learned {
        let mut document = Learned::new(self.library.clone(), processor());
        (document.jobs, document.classes) = (1, classes);
        document
    }

    /// Brings to the first process what all have learned; it is kept there.
    ///
    /// # Safety
    /// As [`Self::begin`].
    pub unsafe fn finish(&self, job: &JobContext, comm: Handle) {
        if !self.is_on() {
            return;
        }
        let own = serde_json::to_vec(&self.of_this_process()).unwrap_or_default();
        // SAFETY: all processes are here (contract of this function).
        let Some(all) = (unsafe { report::bring_to_first(job, comm, &own) }) else { return };
        let ranks = all.len() as f64;
        let mut sum = JobKnowledge::default();
        for knowledge in all.iter().filter_map(|text| serde_json::from_slice(text).ok()) {
            let JobKnowledge { classes, collectives, gained, spent } = knowledge;
            sum.add(classes, Account { collectives, gained, spent, budget: 0.0 });
        }
        let document = self.document(sum.classes);
        if !document.classes.is_empty()
            && let Err(why) = learned::add(&self.directory, &document)
        {
            say(&format!("COLIBRI_ADAPT: what was learned is not kept: {why}"));
        }
        learned::forget_running(&self.directory);
        if self.is_reported {
            let [collectives, gained, spent] =
                [sum.collectives, sum.gained, sum.spent].map(|seconds| seconds / ranks);
            report_lines(&document, collectives, gained, spent).iter().for_each(|line| say(line));
        }
    }
}

/// Keeps what the world's first process has learned, where that was long ago.
pub fn keep_now_and_then(job: &JobContext) {
    let Some(exploring) = &job.exploring else { return };
    let mut kept = lock(&exploring.kept);
    match *kept {
        Some(last) if last.elapsed() > KEEP_EVERY => *kept = Some(Instant::now()),
        _ => return,
    }
    drop(kept);
    let document = exploring.document(exploring.of_this_process().classes);
    if let Err(why) = learned::keep_running(&exploring.directory, &document) {
        say(&format!("COLIBRI_ADAPT: what was learned is not kept: {why}"));
        // It is tried again at the end.
        *lock(&exploring.kept) = None;
    }
}

/// What the user gets to see, in lines.
fn report_lines(document: &Learned, collectives: f64, gained: f64, spent: f64) -> Vec<String> {
    let replaced = document.classes.iter().filter(|class| class.chosen != Method::Default);
    let percent = |part: f64| 100.0 * part / collectives.max(f64::MIN_POSITIVE);
    let mut lines = vec![format!(
        "{collectives:.3} s of a rank in collectives, {gained:.3} s ({:.1} %) less than by the MPI library's own; \
         exploring took {spent:.3} s ({:.2} %)",
        percent(gained),
        percent(spent),
    )];
    let mut count = 0_u64;
    for class in replaced {
        count += 1;
        let faster = class.tried.iter().find(|tried| tried.method == class.chosen);
        let times = faster.map_or(String::new(), |tried| {
            format!(
                ", {:.2} times as fast in {}",
                (-tried.log_ratio).exp(),
                counted(tried.trials, "trial")
            )
        });
        lines.push(format!(
            "{} of {} to {} on {}: {}{times}; {}",
            class.point.collective,
            quantity::format_bytes(class.point.bytes),
            quantity::format_bytes(class.last_bytes),
            class.point.layout,
            class.chosen,
            counted(class.calls, "call"),
        ));
    }
    lines.push(format!(
        "{count} of {} got another method than the MPI library's",
        counted(document.classes.len() as u64, "kind of calls"),
    ));
    lines
}

/// The processor's name as the system tells it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or("unknown processor").to_owned()
}

/// What rank 0 has, on all ranks.
///
/// # Safety
/// `comm` must be live, and all its ranks must do this.
unsafe fn broadcast(job: &JobContext, comm: Handle, own: Vec<u8>) -> Vec<u8> {
    let (mpi, byte) = (job.library, job.library.constants.byte);
    let mut length = c_int::try_from(own.len()).unwrap_or(0);
    // SAFETY: all ranks are here (contract of this function); the buffers have as many bytes as is said.
    unsafe {
        let place: *mut c_void = ptr::from_mut(&mut length).cast();
        if (mpi.bcast)(place, size_of::<c_int>() as c_int, byte, 0, comm) != 0 || length <= 0 {
            return Vec::new();
        }
        let mut text = own;
        text.resize(length as usize, 0);
        match (mpi.bcast)(text.as_mut_ptr().cast(), length, byte, 0, comm) {
            0 => text,
            _ => Vec::new(),
        }
    }
}
