//! What every rank does: wait, asleep, for rank 0's word; call; report.

use records::{Collective, Method, plan::Plan};
use serde::{Deserialize, Serialize};

use super::{
    collectives::{self, Buffers, Operation},
    methods::Methods,
    timing::{self, Report, Scheme},
};
use crate::{
    Error, Result,
    clock::Nanos,
    exchange::{Communicator, Tag},
    sleep::Patience,
};

/// What rank 0 tells the ranks that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// The next calls are those of this visit; to be answered when they can be made.
    Visit(u32),
    /// Call the visit's collective once.
    Call(Call),
    /// The end.
    Stop,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// When, by the clock that all ranks read (scheme global).
    pub agreed: Nanos,
    /// Check the result: the visit's first call, for which the buffers were filled.
    pub check: bool,
}

/// One rank of the measurement: everything that it needs to make a call.
#[derive(Debug)]
pub struct Participant {
    plan: Plan,
    scheme: Scheme,
    rank: u32,
    methods: Methods,
    buffers: Buffers,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    operation: &'static Operation,
    comm: Communicator,
    bytes: usize,
    method: Method,
}

impl Participant {
    /// For a plan that [can be done](super::work::check_plan).
    ///
    /// # Errors
    /// The MPI library cannot force what the plan asks for.
    pub fn new(plan: Plan, scheme: Scheme, control: Communicator) -> Result<Self> {
        let is_native = |cell: &&records::plan::Cell| matches!(cell.method, Method::Native(_));
        let mut natives: Vec<Collective> =
            plan.cells.iter().filter(is_native).map(|cell| cell.collective).collect();
        natives.sort_unstable();
        natives.dedup();
        let (mut outgoing, mut incoming) = (0, 0);
        for cell in plan.cells.iter().filter(|cell| cell.procs > control.rank()) {
            let room = operation(cell.collective)?.room;
            let (out, into) = room(cell.bytes as usize, cell.procs as usize);
            (outgoing, incoming) = (outgoing.max(out), incoming.max(into));
        }
        Ok(Participant {
            methods: Methods::new(control, &natives)?,
            buffers: Buffers::new(outgoing, incoming),
            rank: control.rank(),
            plan,
            scheme,
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
        let (operation, bytes) = (operation(cell.collective)?, cell.bytes as usize);
        operation.prepare(&mut self.buffers, bytes, self.rank);
        self.current = Some(Current { operation, comm, bytes, method: cell.method.clone() });
        Ok(())
    }

    /// Calls the visit's collective once; every rank of the visit must.
    ///
    /// # Errors
    /// The MPI library refuses; the result is wrong.
    pub fn call(&mut self, call: Call) -> Result<Report> {
        let Some(Current { operation, comm, bytes, method }) = &self.current else {
            return Err(Error::Usage("a call was announced before its visit".into()));
        };
        let (scheme, buffers) = (self.scheme, &mut self.buffers);
        let report = timing::call(scheme, operation, buffers, *bytes, comm, call.agreed)?;
        if call.check {
            operation
                .check(&self.buffers, *bytes, self.rank, comm.size())
                .map_err(|error| Error::WrongResult(format!("{error} (method {method})")))?;
        }
        Ok(report)
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
                Command::Call(call) => control.tell(&self.call(call)?, 0, Tag::Report)?,
                Command::Stop => return Ok(()),
            }
        }
    }
}

fn operation(collective: Collective) -> Result<&'static Operation> {
    collectives::find(collective)
        .ok_or_else(|| Error::Unsupported(format!("{collective} cannot be timed in this version")))
}
