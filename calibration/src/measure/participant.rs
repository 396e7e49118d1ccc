//! What every rank does: wait, asleep, for rank 0's word; call; report.

use records::{Collective, Method, plan::Plan};
use runner::Executor;
use serde::{Deserialize, Serialize};

use super::{
    collectives::{self, Buffers, Operation, Own, Place},
    methods::{self, Methods},
    timing::{self, Report, Scheme, Start},
};
use crate::{
    Error, Result,
    clock::Nanos,
    exchange::{Communicator, Tag},
    sleep::Patience,
    synchronisation::Synchroniser,
    table,
};

/// What rank 0 tells the ranks that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// The next calls are those of this visit; to be answered when they can be made.
    Visit(u32),
    /// Measure what the timing scheme subtracts from the visit's calls.
    Baseline,
    /// Call the visit's collective once.
    Call(Call),
    /// Synchronise the clocks, for the first time or anew.
    Synchronise {
        /// For the first time.
        first: bool,
    },
    /// Compare the clocks.
    Check,
    /// The end.
    Stop,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// When and how.
    pub start: Start,
    /// Check the result: the visit's first call, for which the buffers were filled.
    pub check: bool,
}

/// One rank of the measurement: everything that it needs to make a call.
#[derive(Debug)]
pub struct Participant {
    plan: Plan,
    scheme: Scheme,
    synchroniser: Synchroniser,
    methods: Methods,
    buffers: Buffers,
    /// Where the plan has methods of our own.
    own: Option<Own>,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    operation: &'static Operation,
    comm: Communicator,
    bytes: usize,
    method: Method,
    is_own: bool,
}

impl Participant {
    /// For a plan that [can be done](super::work::check_plan).
    ///
    /// # Errors
    /// The MPI library cannot force what the plan asks for.
    pub fn new(
        plan: Plan,
        scheme: Scheme,
        synchroniser: Synchroniser,
        control: Communicator,
    ) -> Result<Self> {
        let is_native = |cell: &&records::plan::Cell| matches!(cell.method, Method::Native(_));
        let mut natives: Vec<Collective> =
            plan.cells.iter().filter(is_native).map(|cell| cell.collective).collect();
        natives.sort_unstable();
        natives.dedup();
        let (mut outgoing, mut incoming) = (0, 0);
        for cell in plan.cells.iter().filter(|cell| cell.procs > control.rank()) {
            let room = collectives::of(cell.collective).room;
            let (out, into) = room(cell.bytes as usize, cell.procs as usize);
            (outgoing, incoming) = (outgoing.max(out), incoming.max(into));
        }
        let mut own = None;
        for cell in &plan.cells {
            if let Some(method) = methods::own(cell.collective, &cell.method)? {
                own = Some(Own { executor: Executor::new(table::session()?), method });
                break;
            }
        }
        Ok(Participant {
            own,
            methods: Methods::new(control, &natives)?,
            buffers: Buffers::new(outgoing, incoming),
            plan,
            scheme,
            synchroniser,
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
        let comm = self.methods.communicator(cell.procs, cell.collective, &cell.method)?;
        let (operation, bytes) = (collectives::of(cell.collective), cell.bytes as usize);
        operation.prepare(&mut self.buffers, bytes, Place::of(&comm));
        let method = methods::own(cell.collective, &cell.method)?;
        let is_own = method.is_some();
        if let (Some(own), Some(method)) = (&mut self.own, method) {
            own.method = method;
        }
        let method = cell.method.clone();
        self.current = Some(Current { operation, comm, bytes, method, is_own });
        Ok(())
    }

    /// Calls the visit's collective once; every rank of the visit must.
    ///
    /// # Errors
    /// The MPI library refuses; the result is wrong.
    pub fn call(&mut self, call: Call) -> Result<Report> {
        let Some(Current { operation, comm, bytes, method, is_own }) = &self.current else {
            return Err(Error::Usage("a call was announced before its visit".into()));
        };
        let buffers = &mut self.buffers;
        let clock = self.synchroniser.line();
        let report = match self.own.as_mut().filter(|_| *is_own) {
            Some(own) => {
                own.executor.forget();
                timing::call(self.scheme, comm, &clock, call.start, || {
                    operation.own(own, buffers, *bytes, comm)
                })?
            }
            None => timing::call(self.scheme, comm, &clock, call.start, || {
                operation.call(buffers, *bytes, comm)
            })?,
        };
        if call.check {
            operation
                .check(&self.buffers, *bytes, Place::of(comm))
                .map_err(|error| Error::WrongResult(format!("{error} (method {method})")))?;
        }
        Ok(report)
    }

    /// Measures what the timing scheme subtracts from the visit's calls; every rank of the visit
    /// must. Rank 0 learns it.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn baseline(&self) -> Result<Vec<Nanos>> {
        match &self.current {
            Some(Current { comm, .. }) => timing::baseline(self.scheme, comm),
            None => Err(Error::Usage("a baseline was announced before its visit".into())),
        }
    }

    /// This rank's part in the global clock.
    pub fn synchroniser(&mut self) -> &mut Synchroniser {
        &mut self.synchroniser
    }

    /// What the runner carried out in the last call; nothing where that was the library's affair.
    pub fn ran(&self) -> Option<String> {
        let own = self.own.as_ref().filter(|_| self.current.as_ref().is_some_and(|now| now.is_own));
        own.and_then(|own| own.executor.ran()).map(ToString::to_string)
    }

    /// Does what rank 0 says until it says that this is the end.
    ///
    /// # Errors
    /// As [`visit`](Self::visit) and [`call`](Self::call).
    pub fn serve(mut self, control: &Communicator) -> Result<()> {
        loop {
            match control.hear_asleep(0, Tag::Command, Patience::of_participant())? {
                Command::Visit(index) => {
                    self.visit(index)?;
                    control.tell(&(), 0, Tag::Report)?;
                }
                Command::Baseline => drop(self.baseline()?),
                Command::Synchronise { first: true } => drop(self.synchroniser.begin()?),
                Command::Synchronise { first: false } => drop(self.synchroniser.pass()?),
                Command::Check => drop(self.synchroniser.check()?),
                Command::Call(call) => control.tell(&self.call(call)?, 0, Tag::Report)?,
                Command::Stop => return Ok(()),
            }
        }
    }
}
