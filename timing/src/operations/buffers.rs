//! What the calls work on, and what stands in it.

use std::ffi::c_int;

use runner::MpiConstants;

/// Memory for the largest call of a plan, allocated and touched once.
#[derive(Debug)]
pub struct Buffers {
    outgoing: Vec<f64>,
    incoming: Vec<f64>,
    counts: Vec<c_int>,
    displacements: Vec<c_int>,
    /// The types and operations that calls name.
    pub(super) constants: MpiConstants,
}

impl Buffers {
    /// Room for so many bytes each, aligned for doubles.
    pub fn new(outgoing: usize, incoming: usize, constants: MpiConstants) -> Self {
        let touched = |bytes: usize| vec![1.0; bytes.div_ceil(size_of::<f64>())];
        Buffers {
            outgoing: touched(outgoing),
            incoming: touched(incoming),
            counts: Vec::new(),
            displacements: Vec::new(),
            constants,
        }
    }

    pub(super) fn outgoing_mut(&mut self) -> &mut [u8] {
        as_bytes_mut(&mut self.outgoing)
    }

    pub(super) fn outgoing_doubles(&mut self) -> &mut [f64] {
        &mut self.outgoing
    }

    pub(super) fn incoming(&self) -> &[u8] {
        as_bytes(&self.incoming)
    }

    pub(super) fn incoming_mut(&mut self) -> &mut [u8] {
        as_bytes_mut(&mut self.incoming)
    }

    /// Equal blocks for the forms that have a count per rank.
    pub(super) fn set_blocks(&mut self, elements: usize, procs: u32) {
        self.counts = vec![elements as c_int; procs as usize];
        self.displacements = (0..procs as usize).map(|rank| (rank * elements) as c_int).collect();
    }

    pub(super) fn counts(&self) -> &[c_int] {
        &self.counts
    }

    pub(super) fn displacements(&self) -> &[c_int] {
        &self.displacements
    }
}

fn as_bytes(doubles: &[f64]) -> &[u8] {
    // SAFETY: the bytes of a double may be read as bytes; the length is that of the same memory.
    unsafe { std::slice::from_raw_parts(doubles.as_ptr().cast(), size_of_val(doubles)) }
}

fn as_bytes_mut(doubles: &mut [f64]) -> &mut [u8] {
    let bytes = size_of_val(doubles);
    // SAFETY: as above; any bytes make doubles.
    unsafe { std::slice::from_raw_parts_mut(doubles.as_mut_ptr().cast(), bytes) }
}

/// A pattern whose period is no power of two, so that a segment in a wrong place shows.
pub(super) fn pattern(index: usize, rank: u32) -> u8 {
    ((index * 31 + 7) % 251) as u8 ^ (rank as u8).wrapping_mul(37)
}

/// Small whole numbers: their sums are exact in any order.
pub(super) fn summand(element: usize, rank: u32) -> f64 {
    f64::from(rank + 1) * factor(element)
}

/// The sum of the ranks before `end`.
pub(super) fn sum(element: usize, end: u32) -> f64 {
    f64::from(end) * f64::from(end + 1) / 2.0 * factor(element)
}

fn factor(element: usize) -> f64 {
    (element % 7 + 1) as f64
}
