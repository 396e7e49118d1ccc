//! Handles that were another's before: what was found of an object does not outlive it.

use std::{ffi::c_int, ptr};

use colibri_runner::{Arguments, Counts, Error, Executor, Handle, Side};
use records::Collective;

use crate::{
    cases::Group,
    kinds,
    library::{UserOperation, call},
    methods::{can, methods, shared_methods},
};

unsafe extern "C" fn first(
    left: *mut std::ffi::c_void,
    right: *mut std::ffi::c_void,
    count: *mut c_int,
    _datatype: *mut Handle,
) {
    for index in 0..unsafe { *count } as usize {
        unsafe { *right.cast::<u32>().add(index) = *left.cast::<u32>().add(index) };
    }
}

unsafe extern "C" fn greatest(
    left: *mut std::ffi::c_void,
    right: *mut std::ffi::c_void,
    count: *mut c_int,
    _datatype: *mut Handle,
) {
    for index in 0..unsafe { *count } as usize {
        unsafe {
            let (left, right) = (left.cast::<u32>().add(index), right.cast::<u32>().add(index));
            *right = (*right).max(*left);
        }
    }
}

/// Operations that are commutative and not, by turns; libraries give the next one the handle of
/// the one before.
pub fn operations(executor: &mut Executor, group: &Group<'_>) {
    let (library, datatype) = (group.library, group.library.names.number);
    for turn in 0..4 {
        let commutative = turn % 2 == 0;
        let function: UserOperation = if commutative { greatest } else { first };
        let mut operation: Handle = 0;
        call!(library, c"MPI_Op_create", function => UserOperation, c_int::from(commutative) => c_int,
            &mut operation => *mut Handle);
        let all = methods(Collective::Allreduce);
        for method in all.into_iter().chain(shared_methods(Collective::Allreduce)) {
            for _ in 0..2 {
                let (own, mut all) = ([group.rank + 5; 3], [0_u32; 3]);
                let (send, receive) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
                let (collective, counts) = (Collective::Allreduce, Counts::Uniform(3));
                let arguments =
                    Arguments::combining(collective, send, receive, counts, datatype, operation, 0);
                match unsafe { executor.run(&method, &arguments, group.comm) } {
                    Ok(()) if commutative => assert_eq!(all, [group.size + 4; 3], "{method}"),
                    Ok(()) => assert_eq!(all, [5; 3], "{method}"),
                    Err(Error::Refused(_)) if !can(&method, false, commutative, group.size) => {}
                    Err(error) => panic!("{method}: {error}"),
                }
            }
        }
        call!(library, c"MPI_Op_free", &mut operation => *mut Handle);
    }
}

/// Types of one size that name other bytes.
pub fn types(executor: &mut Executor, group: &Group<'_>) {
    let library = group.library;
    for places in [[0, 4], [4, 12], [8, 0], [0, 4]] {
        let kind = kinds::Kind::new(library, places, 0, 16);
        let before: Vec<u32> = (0..8).map(|word| 100 * group.rank + word).collect();
        let root: Vec<u32> = (0..8).collect();
        for method in methods(Collective::Bcast) {
            for _ in 0..2 {
                let mut found = before.clone();
                let buffer = ptr::from_mut(&mut found[0]).cast();
                let arguments = Arguments::bcast(Side::uniform(buffer, 2, kind.datatype), 0);
                unsafe { executor.run(&method, &arguments, group.comm) }.unwrap();
                let mut wanted = before.clone();
                for place in places.iter().flat_map(|place| [*place, place + 16]) {
                    wanted[place as usize / 4] = root[place as usize / 4];
                }
                assert_eq!(found, wanted, "{method}");
            }
        }
        let mut datatype = kind.datatype;
        call!(library, c"MPI_Type_free", &mut datatype => *mut Handle);
    }
}
