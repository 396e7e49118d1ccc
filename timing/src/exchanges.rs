//! A collective by its name as an exchange to time: its buffers, its call, the check of its result.

use std::ffi::c_int;

use records::{Collective, Method, Root};
use runner::{
    Arguments, Handle, MethodRunner, Mpi, Runnable, Session, function_name, mockups::Limits,
};
use statistics::stopping::Rule;

use crate::{
    Error, Result,
    operations::{
        Buffers, CallingRank, MeasuredOperation, UnevenBlocks, has_displacements, operation_of,
    },
    repeating::TimedSummary,
    scheme::TimedCall,
    stopwatch::Stopwatch,
};

/// By whom calls are carried out.
#[derive(Debug)]
pub enum CallMaker {
    /// The MPI library, or a plug-in whose function stands in the table.
    Library(Box<Mpi>),
    /// A method of ours.
    Ours(Box<MethodRunner>, Runnable),
}

impl CallMaker {
    /// By a method of ours, or by the session's MPI library where it is the default.
    ///
    /// # Errors
    /// There is no such method, or what carries it out is no part of this program.
    pub fn new(session: &'static Session, collective: Collective, method: &Method) -> Result<Self> {
        match (Runnable::new(collective, method)?, method) {
            (Some(ours), _) => {
                let runner = MethodRunner::new(session, Limits::of_environment()?);
                Ok(CallMaker::Ours(Box::new(runner), ours))
            }
            (None, Method::Default) => Ok(CallMaker::Library(Box::new(*session.mpi()))),
            (None, _) => Err(Error::Refused(format!(
                "method {method}; expected default, own:ALGORITHM or mockup:NAME"
            ))),
        }
    }
}

/// A collective with its buffers.
#[derive(Debug)]
pub struct CollectiveExchange {
    operation: &'static MeasuredOperation,
    maker: CallMaker,
    session: &'static Session,
    /// Of every rank; none: equal blocks.
    factors: Option<Vec<f64>>,
    root: Root,
}

/// One message size of it.
#[derive(Debug)]
struct SizedExchange {
    buffers: Buffers,
    bytes: usize,
    place: CallingRank,
    uneven: Option<UnevenBlocks>,
}

impl CollectiveExchange {
    /// With blocks in proportion to the factors, where there are any.
    ///
    /// # Errors
    /// The collective has no unequal blocks.
    pub fn new(
        session: &'static Session,
        collective: Collective,
        maker: CallMaker,
        factors: Option<Vec<f64>>,
    ) -> Result<Self> {
        if factors.is_some() && !UnevenBlocks::COLLECTIVES.contains(&collective) {
            let known = UnevenBlocks::COLLECTIVES.map(Collective::name).join(", ");
            let problem = format!("{collective} takes no factors; expected one of {known}");
            return Err(Error::Refused(problem));
        }
        let operation = operation_of(collective);
        Ok(CollectiveExchange { operation, maker, session, factors, root: Root::default() })
    }

    /// This exchange with another root than rank 0, where the collective has one.
    #[must_use]
    pub fn with_root(self, root: Root) -> Self {
        CollectiveExchange { root, ..self }
    }

    /// Times calls on `comm`, of the stopwatch's ranks, with messages of `bytes` as the
    /// [collective counts them](Collective::message_size); the last result is checked. Every rank must call
    /// this, and gets the same summary; rank 0 sees each timed call in `observed`.
    ///
    /// # Safety
    /// `comm` must be a communicator of the session's library, with the stopwatch's ranks in their order.
    ///
    /// # Errors
    /// The size or the rule is refused, and so on every rank; the library or the method refuses; a result is wrong on
    /// some rank.
    pub unsafe fn time(
        &mut self,
        stopwatch: &mut Stopwatch,
        comm: Handle,
        bytes: usize,
        rule: &Rule,
        observed: impl FnMut(TimedCall) -> Result<()>,
    ) -> Result<TimedSummary> {
        let collective = self.operation.collective;
        let place = CallingRank::in_communicator(stopwatch.comm(), self.root);
        let mut sized = self.prepare(bytes, place)?;
        let (operation, maker) = (self.operation, &mut self.maker);
        let call = || {
            let arguments = sized.arguments(operation);
            // SAFETY: `sized` has the buffers that the arguments say; `comm` is live and has the stopwatch's
            // ranks (contract of this function), all of which call with the same method.
            unsafe {
                match &mut *maker {
                    CallMaker::Ours(runner, ours) => Ok(runner.run(ours, &arguments, comm)?),
                    CallMaker::Library(table) => match table.call(&arguments, comm) {
                        0 => Ok(()),
                        code => Err(runner::Error::Mpi { call: function_name(collective), code })?,
                    },
                }
            }
        };
        let summary = stopwatch.time(rule, call, observed)?;
        stopwatch.comm().all_well(sized.check(operation))?;
        Ok(summary)
    }

    /// Buffers for a size; refused on every rank or on none.
    fn prepare(&self, bytes: usize, place: CallingRank) -> Result<SizedExchange> {
        let (collective, procs) = (self.operation.collective, place.procs as usize);
        let whole = if has_displacements(collective) { procs } else { 1 };
        if bytes.checked_mul(whole).is_none_or(|all| all > c_int::MAX as usize) {
            let problem = format!(
                "messages of {bytes} bytes; {collective} on {procs} ranks takes at most {}",
                c_int::MAX as usize / whole
            );
            return Err(Error::Refused(problem));
        }
        if let CallMaker::Ours(runner, ours) = &self.maker {
            ours.check(place.procs, bytes as u64, runner.limits())?;
        }
        let constants = self.session.mpi().constants;
        if let Some(factors) = &self.factors {
            if factors.len() != procs {
                let problem =
                    format!("{} factors; expected {procs}, one of each rank", factors.len());
                return Err(Error::Refused(problem));
            }
            let uneven = UnevenBlocks::new(bytes, factors)?;
            let buffers = uneven.buffers(collective, place, constants);
            return Ok(SizedExchange { buffers, bytes, place, uneven: Some(uneven) });
        }
        let (out, into) = self.operation.room(bytes, place.procs);
        let mut buffers = Buffers::new(out, into, constants);
        self.operation.prepare(&mut buffers, bytes, place);
        Ok(SizedExchange { buffers, bytes, place, uneven: None })
    }
}

impl SizedExchange {
    fn arguments(&mut self, operation: &MeasuredOperation) -> Arguments {
        let SizedExchange { buffers, bytes, place, uneven } = self;
        match uneven {
            Some(uneven) => uneven.arguments(operation.collective, buffers, *place),
            None => operation.arguments(buffers, *bytes, *place),
        }
    }

    fn check(&self, operation: &MeasuredOperation) -> Result<()> {
        match &self.uneven {
            Some(uneven) => uneven.check(operation.collective, &self.buffers, self.place),
            None => operation.check(&self.buffers, self.bytes, self.place),
        }
    }
}
