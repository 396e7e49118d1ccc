//! What the processor takes to combine two messages.

use std::ffi::c_int;

use mpi::{
    collective::SystemOperation,
    ffi,
    traits::{AsRaw, Equivalence},
};
use records::{calibration::Operation, group_observation::GroupKind};

use super::{
    cells::{Experiment, ObservedKind, SizedExperiment},
    pair::Observed,
};
use crate::{
    Result,
    clock::{now, seconds},
    exchange::check,
};

/// Two operands.
#[derive(Debug)]
pub struct Combiner {
    /// Words, so that elements of every type are aligned.
    operand: Vec<u64>,
    result: Vec<u64>,
}

impl Combiner {
    /// For the cells that combine.
    pub fn new(cells: &[SizedExperiment]) -> Self {
        let combining =
            cells.iter().filter(|cell| matches!(cell.experiment, Experiment::Combine(_)));
        let largest = combining.map(|cell| cell.bytes).max().unwrap_or_default();
        let words = largest.div_ceil(8) as usize;
        // As numbers of any type: small, normal, and the same after any number of sums with 0.
        Combiner { operand: vec![0; words], result: vec![0x3FF0_0000_3F80_0000; words] }
    }

    /// One repetition: as many calls as the cell has messages.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn repeat(&mut self, cell: &SizedExperiment, operation: Operation) -> Result<Observed> {
        let count = (cell.bytes / operation.element_bytes()) as c_int;
        let (datatype, function) = handles(operation);
        let begun = now();
        for _ in 0..cell.messages {
            // SAFETY: both buffers hold `cell.bytes` bytes, aligned for any type, and do not
            // overlap; the handles are the library's constants.
            let code = unsafe {
                ffi::MPI_Reduce_local(
                    self.operand.as_ptr().cast(),
                    self.result.as_mut_ptr().cast(),
                    count,
                    datatype,
                    function,
                )
            };
            check("MPI_Reduce_local", code)?;
        }
        let ended = now();
        let kind = ObservedKind::Group(GroupKind::Combine, Some(operation));
        Ok(vec![(kind, seconds(ended - begun))])
    }
}

fn handles(operation: Operation) -> (ffi::MPI_Datatype, ffi::MPI_Op) {
    let (double, float) = (f64::equivalent_datatype(), f32::equivalent_datatype());
    let (int, byte) = (i32::equivalent_datatype(), u8::equivalent_datatype());
    let (sum, max) = (SystemOperation::sum, SystemOperation::max);
    let (datatype, function) = match operation {
        Operation::SumDouble => (double, sum()),
        Operation::SumFloat => (float, sum()),
        Operation::SumInt => (int, sum()),
        Operation::MaxDouble => (double, max()),
        Operation::MaxFloat => (float, max()),
        Operation::MaxInt => (int, max()),
        Operation::BxorByte => (byte, SystemOperation::bitwise_xor()),
    };
    (datatype.as_raw(), function.as_raw())
}
