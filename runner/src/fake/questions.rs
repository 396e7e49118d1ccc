//! What is asked of operations and communicators.

use std::ffi::{c_char, c_int, c_void};

use super::{
    operations::XOR,
    world::{RANK, set},
};
use crate::{CopyAttribute, DeleteAttribute, Handle};

pub unsafe extern "C-unwind" fn op_commutative(
    operation: Handle,
    commutative: *mut c_int,
) -> c_int {
    set(commutative, c_int::from(operation == XOR))
}

pub unsafe extern "C-unwind" fn comm_rank(_comm: Handle, rank: *mut c_int) -> c_int {
    set(rank, RANK.get().1)
}

pub unsafe extern "C-unwind" fn comm_size(_comm: Handle, size: *mut c_int) -> c_int {
    set(size, RANK.get().2)
}

pub unsafe extern "C-unwind" fn comm_test_inter(_comm: Handle, is_inter: *mut c_int) -> c_int {
    set(is_inter, 0)
}

pub unsafe extern "C-unwind" fn comm_split(
    comm: Handle,
    _color: c_int,
    _key: c_int,
    made: *mut Handle,
) -> c_int {
    set(made, comm)
}

/// Ranks 0 and 1 of four are on one node, the others on another.
pub unsafe extern "C-unwind" fn get_processor_name(name: *mut c_char, length: *mut c_int) -> c_int {
    let node = b'0' + (RANK.get().1 % 4 / 2) as u8;
    set(name, node as c_char) + set(length, 1)
}

/// No attribute is ever found: every call makes its communicator anew.
pub unsafe extern "C-unwind" fn comm_get_attr(
    _comm: Handle,
    _keyval: c_int,
    _value: *mut c_void,
    there: *mut c_int,
) -> c_int {
    set(there, 0)
}

pub unsafe extern "C-unwind" fn comm_set_attr(
    _comm: Handle,
    _keyval: c_int,
    _value: *mut c_void,
) -> c_int {
    0
}

pub unsafe extern "C-unwind" fn comm_set_errhandler(_comm: Handle, _handler: Handle) -> c_int {
    0
}

pub unsafe extern "C-unwind" fn comm_create_keyval(
    _copy: CopyAttribute,
    _delete: DeleteAttribute,
    keyval: *mut c_int,
    _state: *mut c_void,
) -> c_int {
    set(keyval, 1)
}
