//! What is known from other jobs, and what is kept of this one.
//!
//! The first process of the world alone reads and writes the directory, so that all have the same, and no file is
//! asked for by a thousand nodes. A communicator gets what its rank 0 knows of its layout when it is first used: what
//! the directory told, and what this job has shown since.

use std::{
    collections::HashMap,
    ffi::{c_int, c_void},
    fs,
    path::Path,
    ptr,
    sync::{Arc, Mutex, OnceLock, Weak},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use choosing::exploring::{Account, CallClass, Candidate};
use records::{
    Collective, FileError, Layout, Method,
    candidates::{Candidates, PredictedCandidate},
    counted,
    learned::{Learned, LearnedClass, store},
    platform::processor_name,
    quantity,
};
use runner::{Handle, Runnable};
use serde::{Deserialize, Serialize};

use super::CommunicatorExplorer;
use crate::{
    choice::runnable,
    job::JobContext,
    lock::lock,
    report,
    say::say,
    settings::{ADAPT, ExploringSettings},
};

/// What was learned is kept so often, for a job that does not reach `MPI_Finalize`.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// What the directory told when the job began.
#[derive(Serialize, Deserialize)]
struct Directory {
    learned: Learned,
    candidates: Option<Candidates>,
}

/// What the world's first process has written so far.
struct Kept {
    when: Instant,
    learned: Learned,
}

/// Exploring in this job.
pub struct Exploring {
    pub settings: ExploringSettings,
    library: String,
    /// The same on all processes; nothing where the directory can't be used.
    known: OnceLock<Option<Directory>>,
    /// Made once per process: a trace takes their addresses for them, after the communicator is freed, too.
    runnables: Mutex<HashMap<(Collective, Method), Option<&'static Runnable>>>,
    live: Mutex<Vec<Weak<CommunicatorExplorer>>>,
    /// Of communicators that are no more.
    ended: Mutex<JobKnowledge>,
    /// Of the world's first process alone.
    kept: Mutex<Option<Kept>>,
}

/// What one process knows of the communicators of which it is rank 0.
#[derive(Serialize, Deserialize)]
struct JobKnowledge {
    learned: Learned,
    account: Account,
}

impl JobKnowledge {
    fn new(learned: Learned) -> Self {
        JobKnowledge { learned, account: Account::default() }
    }

    fn add(&mut self, classes: Vec<LearnedClass>, account: Account) {
        classes.into_iter().for_each(|class| self.learned.pool(class));
        self.account += account;
    }
}

impl Exploring {
    /// `library`: the MPI library and its version.
    pub fn new(settings: &ExploringSettings, library: String) -> Self {
        Exploring {
            settings: settings.clone(),
            ended: Mutex::new(JobKnowledge::new(Learned::new(library.clone(), String::new()))),
            library,
            known: OnceLock::new(),
            runnables: Mutex::default(),
            live: Mutex::default(),
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
        let own = is_first.then(|| match self.read_directory() {
            Ok(known) => Some(known),
            Err(why) => {
                say(&format!("{ADAPT}: {why}; no method is tried (a damaged file can be removed: then all is learned anew)"));
                None
            }
        });
        let text = serde_json::to_vec(&own.flatten()).unwrap_or_default();
        // SAFETY: all processes are here (contract of this function).
        let text = unsafe { broadcast(job, comm, text) };
        let known = serde_json::from_slice(&text).unwrap_or_default();
        let _ = self.known.set(known);
        if is_first {
            *lock(&self.kept) = Some(Kept { when: Instant::now(), learned: self.nothing() });
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
            if let Ok(known) = serde_json::from_slice(&known) {
                explorer.set_known(known);
            }
        }
    }

    /// A communicator is freed.
    pub fn end(&self, explorer: &CommunicatorExplorer) {
        explorer.take_last_sums();
        // Held over both: whoever counts what was learned must not find it twice.
        let mut ended = lock(&self.ended);
        lock(&self.live)
            .retain(|live| live.strong_count() > 0 && !ptr::eq(live.as_ptr(), explorer));
        if explorer.rank == 0 {
            ended.add(explorer.learned(), explorer.account());
        }
    }

    /// What carries out a method; nothing where it can't be had.
    pub fn runnable(&self, collective: Collective, method: &Method) -> Option<&'static Runnable> {
        let mut known = lock(&self.runnables);
        *known.entry((collective, method.clone())).or_insert_with(|| {
            let made = runnable(collective, method).ok()?;
            Some(&*Box::leak(Box::new(made)))
        })
    }

    fn read_directory(&self) -> Result<Directory, FileError> {
        let directory = &self.settings.directory;
        fs::create_dir_all(directory)
            .map_err(|error| FileError::io(directory, "make this directory", &error))?;
        let nothing = Learned::new(self.library.clone(), processor());
        let learned = store::read(directory, &nothing.library, &nothing.processor)?;
        let candidates = Candidates::read(directory)?;
        Ok(Directory { learned: learned.unwrap_or(nothing), candidates })
    }

    /// What has been ranked for a class, best first.
    pub fn ranked(&self, class: CallClass, layout: Layout) -> Vec<Candidate> {
        let Some(Some(Directory { candidates: Some(candidates), .. })) = self.known.get() else {
            return Vec::new();
        };
        let ranked = candidates.find(class.collective, layout, class.size.first_bytes());
        let candidate = |ranked: &PredictedCandidate| Candidate {
            method: ranked.method.clone(),
            max_seconds: Some(ranked.max_seconds),
        };
        ranked.iter().map(candidate).collect()
    }

    pub fn living(&self) -> Vec<Arc<CommunicatorExplorer>> {
        lock(&self.live).iter().filter_map(Weak::upgrade).collect()
    }

    /// What this process knows of a layout: from other jobs, and from this one.
    fn known_of(&self, layout: Layout) -> Learned {
        let mut known = self.nothing();
        if let Some(Some(directory)) = self.known.get() {
            let classes = directory.learned.classes.iter();
            known.classes = classes.filter(|class| class.point.layout == layout).cloned().collect();
        }
        known.merge(&self.of_this_process(|of| of == layout).learned);
        known
    }

    /// What this process has learned of the communicators of which it is rank 0, of those layouts that are meant.
    fn of_this_process(&self, is_meant: impl Fn(Layout) -> bool) -> JobKnowledge {
        let mut all = JobKnowledge::new(self.nothing());
        let ended = lock(&self.ended);
        let living = self.living();
        let meant =
            living.iter().filter(|explorer| explorer.rank == 0 && is_meant(explorer.layout()));
        for explorer in meant {
            all.add(explorer.learned(), explorer.account());
        }
        let classes = ended.learned.classes.iter();
        let meant = classes.filter(|class| is_meant(class.point.layout));
        all.add(meant.cloned().collect(), ended.account);
        all
    }

    /// Of this library, and of the processor of the world's first process, which alone has looked.
    fn nothing(&self) -> Learned {
        let processor = match self.known.get() {
            Some(Some(directory)) => directory.learned.processor.clone(),
            _ => String::new(),
        };
        Learned::new(self.library.clone(), processor)
    }

    /// Adds what is new since the last time, where that was long ago.
    fn keep_now_and_then(&self) {
        let mut kept = lock(&self.kept);
        let Some(kept) = kept.as_mut().filter(|kept| kept.when.elapsed() > KEEP_EVERY) else {
            return;
        };
        let mut learned = self.of_this_process(|_| true).learned;
        learned.jobs = 1;
        kept.when = Instant::now();
        if add_to_directory(&self.settings.directory, &learned.since(&kept.learned)) {
            kept.learned = learned;
        }
    }

    /// Brings to the first process what all have learned; it is kept there by [`wait_until_kept`].
    ///
    /// # Safety
    /// As [`Self::begin`].
    pub unsafe fn finish(&self, job: &JobContext, comm: Handle) {
        if !self.is_on() {
            return;
        }
        let mut own = self.of_this_process(|_| true);
        // For the report all of it, for the directory what it does not have yet.
        let all = own.learned.clone();
        if let Some(kept) = &*lock(&self.kept) {
            own.learned.jobs = 1;
            own.learned = own.learned.since(&kept.learned);
        }
        let text = serde_json::to_vec(&own).unwrap_or_default();
        // SAFETY: all processes are here (contract of this function).
        let Some(texts) = (unsafe { report::bring_to_first(job, comm, &text) }) else { return };
        let ranks = texts.len() as f64;
        let mut new = JobKnowledge::new(self.nothing());
        let mut whole = all;
        // The first is this process itself.
        for (rank, text) in texts.iter().enumerate() {
            let Ok(knowledge) = serde_json::from_slice::<JobKnowledge>(text) else { continue };
            new.learned.jobs += knowledge.learned.jobs;
            if rank > 0 {
                knowledge.learned.classes.iter().for_each(|class| whole.pool(class.clone()));
            }
            new.add(knowledge.learned.classes, knowledge.account);
        }
        let directory = self.settings.directory.clone();
        // MPI takes longer to end.
        let writer = thread::Builder::new();
        let learned = new.learned.clone();
        match writer.spawn(move || add_to_directory(&directory, &learned)) {
            Ok(writer) => *lock(&WRITER) = Some(writer),
            Err(_) => {
                add_to_directory(&self.settings.directory, &new.learned);
            }
        }
        if self.settings.is_reported {
            report_lines(&whole, new.account, ranks).iter().for_each(|line| say(line));
        }
    }
}

/// Who writes into the directory while MPI ends.
static WRITER: Mutex<Option<JoinHandle<bool>>> = Mutex::new(None);

/// After MPI has ended: what was learned is in the directory then.
pub fn wait_until_kept() {
    if let Some(writer) = lock(&WRITER).take() {
        // A panic of it was printed.
        let _ = writer.join();
    }
}

/// What went wrong is printed. Whether it is there now.
fn add_to_directory(directory: &Path, learned: &Learned) -> bool {
    if learned.classes.is_empty() {
        return true;
    }
    match store::add(directory, learned) {
        Ok(added) => {
            for why in added.unusable {
                say(&format!("{ADAPT}: {why}; this file is left as it is"));
            }
            true
        }
        Err(why) => {
            say(&format!("{ADAPT}: what was learned is not kept: {why}"));
            false
        }
    }
}

/// Keeps what the world's first process has learned, where that was long ago.
pub fn keep_now_and_then(job: &JobContext) {
    if let Some(exploring) = &job.exploring {
        exploring.keep_now_and_then();
    }
}

/// What the user gets to see, in lines; `account` is of so many ranks.
fn report_lines(document: &Learned, account: Account, ranks: f64) -> Vec<String> {
    let Account { collectives, gained, spent, .. } = account;
    let [collectives, gained, spent] = [collectives, gained, spent].map(|all| all / ranks);
    let replaced = document.classes.iter().filter(|class| class.chosen != Method::Default);
    let percent = |part: f64, of: f64| if of > 0.0 { 100.0 * part / of } else { 0.0 };
    let mut lines = vec![format!(
        "{collectives:.3} s of a rank in collectives, {gained:.3} s ({:.1} %) less than by the MPI library's own; \
         exploring took {spent:.3} s ({:.2} %)",
        percent(gained, collectives + gained),
        percent(spent, collectives),
    )];
    let mut count = 0_u64;
    for class in replaced {
        count += 1;
        let times = class.evidence().map_or(String::new(), |tried| {
            format!(
                ", {:.2} times as fast in {}",
                (-tried.ratios.mean).exp(),
                counted(tried.ratios.trials, "trial")
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
        "{count} of {} kinds of calls got another method than the MPI library's",
        document.classes.len(),
    ));
    lines
}

/// The processor's name as the system gives it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processor_name(&text);
    if name.is_empty() { "unknown processor".into() } else { name }
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

#[cfg(test)]
mod tests {
    use records::Point;

    use super::*;

    #[test]
    fn what_could_not_be_written_is_written_later() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("learned");
        let settings = ExploringSettings {
            directory: directory.clone(),
            budget: 0.01,
            is_reported: false,
            by_turns: false,
        };
        let exploring = Exploring::new(&settings, "Some MPI 1.0".into());
        let class = LearnedClass {
            point: Point {
                collective: Collective::Bcast,
                layout: "1x2".parse().unwrap(),
                bytes: 1024,
            },
            last_bytes: 2047,
            calls: 100,
            default_seconds: 1e-3,
            chosen: Method::Default,
            tried: Vec::new(),
        };
        lock(&exploring.ended).add(vec![class], Account::default());
        let keep = || {
            if let Some(kept) = lock(&exploring.kept).as_mut() {
                kept.when -= 2 * KEEP_EVERY;
            }
            exploring.keep_now_and_then();
        };
        let nothing = Kept { when: Instant::now(), learned: exploring.nothing() };
        *lock(&exploring.kept) = Some(nothing);
        fs::write(&directory, "a file where the directory should be").unwrap();
        keep();
        fs::remove_file(&directory).unwrap();
        keep();
        let kept = store::read(&directory, "Some MPI 1.0", "").unwrap().unwrap();
        assert_eq!((kept.jobs, kept.classes[0].calls), (1, 100));
    }

    #[test]
    fn shares_of_no_time_are_none() {
        let nothing = Learned::new("Some MPI 1.0".into(), "some processor".into());
        let lines = report_lines(&nothing, Account { spent: 1e-4, ..Account::default() }, 1.0);
        assert!(lines[0].ends_with("exploring took 0.000 s (0.00 %)"), "{}", lines[0]);
    }
}
