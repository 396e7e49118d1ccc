//! Operations that combine operands.

use std::ffi::{c_int, c_void};

use super::{
    types::{gather, scatter},
    world::code,
};
use crate::Handle;

/// Composition of pairs, in order.
pub const COMPOSE: Handle = 1;
/// Bitwise exclusive or, which is commutative.
pub const XOR: Handle = 2;
pub unsafe extern "C-unwind" fn reduce_local(
    left: *const c_void,
    right: *mut c_void,
    count: c_int,
    datatype: Handle,
    operation: Handle,
) -> c_int {
    let count = count as usize;
    // SAFETY: the caller's buffers.
    unsafe {
        let (a, b) = (gather(left, count, datatype), gather(right, count, datatype));
        code(scatter(&combine(operation, &a, &b), right, count, datatype))
    }
}

/// `left op right` of the bytes of as many elements.
pub fn combine(operation: Handle, left: &[u8], right: &[u8]) -> Vec<u8> {
    match operation {
        XOR => left.iter().zip(right).map(|(a, b)| a ^ b).collect(),
        _ => left.chunks(2).zip(right.chunks(2)).flat_map(|(a, b)| compose(a, b)).collect(),
    }
}

/// First `a`, then `b`.
pub fn compose(a: &[u8], b: &[u8]) -> [u8; 2] {
    [a[0].wrapping_mul(b[0]), a[1].wrapping_mul(b[0]).wrapping_add(b[1])]
}
