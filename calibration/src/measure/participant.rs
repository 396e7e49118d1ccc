//! What every rank does: wait, asleep, for rank 0's word; call; report.

use std::{
    collections::{HashMap, hash_map::Entry},
    rc::Rc,
};

use records::{
    Collective, Method, Native, Root,
    job_nodes::JobNodes,
    plan::{Cell, Plan},
};
use runner::{MethodRunner, Mpi, Runnable, function_name, mockups::Limits};
use serde::{Deserialize, Serialize};
use timing::{
    operations::{Buffers, CallingRank, MeasuredOperation, UnevenBlocks, operation_of},
    scheme::{self, CallReport, Scheme, Start},
};

use super::{methods::MethodCommunicators, plugins::LoadedPlugin};
use crate::{
    Error, Result,
    clock::Nanos,
    disturbance::sampling::{RankSample, Sampler},
    exchange::{Communicator, Tag, check},
    polling_pause::PollingPause,
    serving,
    synchronisation::Synchroniser,
    table,
};

/// What rank 0 tells the ranks that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeasureCommand {
    /// The next calls are those of this visit; to be answered when they can be made.
    Visit(u32),
    /// Measure what the timing scheme subtracts from the visit's calls.
    Baseline,
    /// Call the visit's collective once.
    Call(CallRequest),
    /// Call the collective of a visit several times in a row; no `Visit` goes before.
    Row(CallSeries),
    /// The visit's calls are made: its plug-in is to free what it has prepared.
    Leave,
    /// Synchronise the clocks, for the first time or anew.
    Synchronise {
        /// For the first time.
        first: bool,
    },
    /// Compare the clocks.
    Check,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRequest {
    /// When and how.
    pub start: Start,
    /// Check the result: the visit's first call, for which the buffers were filled.
    pub check: bool,
}

/// Calls in a row, each begun when a barrier has brought the ranks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSeries {
    /// The visit's index.
    pub visit: u32,
    pub calls: u32,
    /// They are the visit's first.
    pub first: bool,
}

/// One rank of the measurement: everything that it needs to make a call.
#[derive(Debug)]
pub struct Participant {
    plan: Plan,
    way: CallingWay,
    synchroniser: Synchroniser<Communicator>,
    sampler: Sampler,
    methods: MethodCommunicators,
    buffers: Buffers,
    /// Where the plan has methods of ours.
    runner: Option<MethodRunner>,
    plugins: HashMap<(Collective, records::Plugin), Rc<LoadedPlugin>>,
    library: Mpi,
    current: Option<Current>,
}

/// How all calls of a job are made and timed.
#[derive(Debug, Clone)]
pub struct CallingWay {
    /// By which scheme they are timed.
    pub scheme: Scheme,
    /// Where the collective has one.
    pub root: Root,
    /// How large each rank's block is beside the others'; none: equal blocks.
    pub factors: Option<Vec<f64>>,
}

#[derive(Debug)]
struct Current {
    operation: &'static MeasuredOperation,
    comm: Communicator,
    place: CallingRank,
    bytes: usize,
    /// With buffers of their own.
    uneven: Option<(UnevenBlocks, Buffers)>,
    method: Method,
    executor: CallExecutor,
    /// In a row, timed together.
    calls: u32,
}

/// What carries out the calls of a visit.
#[derive(Debug)]
enum CallExecutor {
    Library,
    Ours(Runnable),
    Plugin(Rc<LoadedPlugin>),
}

/// On the linked MPI library; once per process.
fn start_runner() -> Result<MethodRunner> {
    Ok(MethodRunner::new(table::session()?, Limits::of_environment()?))
}

impl Participant {
    /// For a plan that [can be done](super::work::check_plan).
    ///
    /// # Errors
    /// The MPI library cannot force what the plan asks for; a plug-in cannot be loaded.
    pub fn new(
        plan: Plan,
        way: CallingWay,
        synchroniser: Synchroniser<Communicator>,
        control: Communicator,
        nodes: JobNodes,
        sampler: Sampler,
    ) -> Result<Self> {
        let native = |cell: &Cell| match cell.method {
            Method::Native(native) => Some((cell.point.collective, native)),
            _ => None,
        };
        let mut natives: Vec<(Collective, Native)> = plan.cells.iter().filter_map(native).collect();
        natives.sort_unstable();
        natives.dedup();
        let (mut outgoing, mut incoming) = (0, 0);
        let mut plugins = HashMap::new();
        for cell in &plan.cells {
            let members = nodes.members(cell.point.layout).map_err(Error::Usage)?;
            if !members.contains(&control.rank()) {
                continue;
            }
            if let Method::Plugin(named) = &cell.method {
                let key = (cell.point.collective, (**named).clone());
                if let Entry::Vacant(place) = plugins.entry(key) {
                    place.insert(Rc::new(LoadedPlugin::load(cell.point.collective, named)?));
                }
            }
            let operation = operation_of(cell.point.collective);
            let (out, into) = operation.room(cell.point.bytes as usize, cell.point.procs());
            (outgoing, incoming) = (outgoing.max(out), incoming.max(into));
        }
        let library = table::table()?;
        let has_ours = plan.cells.iter().any(|cell| cell.method.is_ours());
        Ok(Participant {
            runner: has_ours.then(start_runner).transpose()?,
            plugins,
            buffers: Buffers::new(outgoing, incoming, library.constants),
            library,
            methods: MethodCommunicators::new(control, nodes, &natives)?,
            plan,
            way,
            synchroniser,
            sampler,
            current: None,
        })
    }

    /// Makes the calls of a visit possible and fills the buffers; every rank of the visit must.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn visit(&mut self, index: u32) -> Result<()> {
        let visit = &self.plan.visits[index as usize];
        let cell = &self.plan.cells[visit.cell as usize];
        let comm =
            self.methods.communicator(cell.point.layout, cell.point.collective, &cell.method)?;
        let (operation, bytes) = (operation_of(cell.point.collective), cell.point.bytes as usize);
        let place = CallingRank::in_communicator(&comm, self.way.root);
        let uneven = self.uneven(cell, place)?;
        if uneven.is_none() {
            operation.prepare(&mut self.buffers, bytes, place);
        }
        let executor = self.executor(cell)?;
        if let CallExecutor::Plugin(plugin) = &executor {
            plugin.initialize(comm.raw())?;
        }
        let (method, calls) = (cell.method.clone(), visit.calls);
        self.current =
            Some(Current { operation, comm, place, bytes, uneven, method, executor, calls });
        Ok(())
    }

    /// The blocks of a cell where they are not equal.
    fn uneven(&self, cell: &Cell, place: CallingRank) -> Result<Option<(UnevenBlocks, Buffers)>> {
        let Some(factors) = &self.way.factors else { return Ok(None) };
        let Some(factors) = factors.get(..place.procs as usize) else {
            let problem = format!("{} factors, but {} ranks", factors.len(), place.procs);
            return Err(Error::Usage(problem));
        };
        let blocks = UnevenBlocks::new(cell.point.bytes as usize, factors)?;
        let buffers = blocks.buffers(cell.point.collective, place, self.library.constants);
        Ok(Some((blocks, buffers)))
    }

    fn executor(&self, cell: &Cell) -> Result<CallExecutor> {
        if let Method::Plugin(named) = &cell.method {
            let plugin = self.plugins.get(&(cell.point.collective, (**named).clone()));
            let unknown =
                || Error::Plugin(format!("{} was not announced by the plan", cell.method));
            return Ok(CallExecutor::Plugin(Rc::clone(plugin.ok_or_else(unknown)?)));
        }
        let ours = Runnable::new(cell.point.collective, &cell.method)?;
        Ok(ours.map_or(CallExecutor::Library, CallExecutor::Ours))
    }

    /// Ends a visit; every rank of a visit by a plug-in must.
    ///
    /// # Errors
    /// The plug-in refuses.
    pub fn leave(&mut self) -> Result<()> {
        match self.current.take() {
            Some(Current { executor: CallExecutor::Plugin(plugin), comm, .. }) => {
                plugin.finalize(comm.raw())
            }
            _ => Ok(()),
        }
    }

    /// Calls the visit's collective once; every rank of the visit must.
    ///
    /// # Errors
    /// The MPI library refuses; the result is wrong.
    pub fn call(&mut self, call: CallRequest) -> Result<CallReport> {
        let Some(current) = &mut self.current else {
            return Err(Error::Usage("a call was announced before its visit".into()));
        };
        let Current { operation, comm, place, bytes, uneven, method, executor, calls } = current;
        let (library, place) = (&self.library, *place);
        let buffers = &mut self.buffers;
        let clock = self.synchroniser.line();
        let mut runner = self.runner.as_mut();
        let mut once = || -> Result<()> {
            let arguments = match &mut *uneven {
                Some((blocks, own)) => blocks.arguments(operation.collective, own, place),
                None => operation.arguments(buffers, *bytes, place),
            };
            // SAFETY: the buffers, from which the arguments were cut, hold what they say; all ranks of the
            // visit call by the same method; for a plug-in's signature see `LoadedPlugin`.
            unsafe {
                match (&*executor, runner.as_mut()) {
                    (CallExecutor::Ours(ours), Some(runner)) => {
                        Ok(runner.run(ours, &arguments, comm.handle())?)
                    }
                    (CallExecutor::Ours(_), None) => {
                        Err(Error::Usage(format!("{method} was not announced by the plan")))
                    }
                    (CallExecutor::Plugin(plugin), _) => {
                        plugin.check_call(plugin.table().call(&arguments, comm.handle()))
                    }
                    (CallExecutor::Library, _) => {
                        let code = library.call(&arguments, comm.handle());
                        check(function_name(operation.collective), code)
                    }
                }
            }
        };
        let report = scheme::call(self.way.scheme, comm, comm.size(), &clock, call.start, || {
            (0..*calls).try_for_each(|_| once())
        })?;
        if call.check {
            let checked = match uneven {
                Some((blocks, own)) => blocks.check(operation.collective, own, place),
                None => operation.check(&self.buffers, *bytes, place),
            };
            checked.map_err(|error| Error::WrongResult(format!("{error} (method {method})")))?;
        }
        Ok(report)
    }

    /// Makes calls of a visit in a row, `called` after each; every rank of the visit must.
    ///
    /// # Errors
    /// As [`visit`](Self::visit) and [`call`](Self::call).
    pub fn row(
        &mut self,
        row: CallSeries,
        mut called: impl FnMut(&Self),
    ) -> Result<Vec<CallReport>> {
        if row.first {
            self.visit(row.visit)?;
        }
        let call = |number| {
            let check = row.first && number == 0;
            let report = self.call(CallRequest { start: Start::default(), check })?;
            called(self);
            Ok(report)
        };
        (0..row.calls).map(call).collect()
    }

    /// Does something, and tells what was seen of others on this rank's machine meanwhile.
    ///
    /// # Errors
    /// As `act`.
    pub fn watched<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, RankSample)> {
        self.sampler.begin();
        let done = act(self)?;
        Ok((done, self.sampler.end()))
    }

    /// Measures what the timing scheme subtracts from the visit's calls; every rank of the visit
    /// must. Rank 0 learns it.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn baseline(&self) -> Result<Vec<Nanos>> {
        match &self.current {
            Some(Current { comm, .. }) => scheme::baseline(self.way.scheme, comm),
            None => Err(Error::Usage("a baseline was announced before its visit".into())),
        }
    }

    /// This rank's part in the global clock.
    pub fn synchroniser(&mut self) -> &mut Synchroniser<Communicator> {
        &mut self.synchroniser
    }

    /// What was carried out in the last call; nothing where that was the library's affair, which does
    /// not tell.
    pub fn ran(&self) -> Option<String> {
        let current = self.current.as_ref()?;
        match &current.executor {
            CallExecutor::Library => {
                self.methods.ran(current.operation.collective, &current.method)
            }
            CallExecutor::Ours(ours) => self.runner.as_ref()?.ran(ours),
            CallExecutor::Plugin(plugin) => Some(plugin.to_string()),
        }
    }

    /// Does what rank 0 says until it says that this is the end.
    ///
    /// # Errors
    /// As [`visit`](Self::visit) and [`call`](Self::call).
    pub fn serve(mut self, control: &Communicator) -> Result<()> {
        serving::follow(control, PollingPause::for_participant, |command| match command {
            MeasureCommand::Visit(index) => {
                self.visit(index)?;
                control.send_value(&(), 0, Tag::Report)
            }
            MeasureCommand::Baseline => self.baseline().map(drop),
            MeasureCommand::Synchronise { first: true } => self.synchroniser.begin().map(drop),
            MeasureCommand::Synchronise { first: false } => self.synchroniser.pass().map(drop),
            MeasureCommand::Check => self.synchroniser.check().map(drop),
            MeasureCommand::Call(call) => {
                control.send_value(&self.watched(|own| own.call(call))?, 0, Tag::Report)
            }
            MeasureCommand::Row(row) => {
                control.send_value(&self.watched(|own| own.row(row, |_| ()))?, 0, Tag::Report)
            }
            MeasureCommand::Leave => self.leave(),
        })
    }
}
