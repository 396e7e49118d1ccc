//! Short reductions of numbers, without a call of `MPI_Reduce_local`.
//!
//! That takes 150 to 200 ns in Open MPI 5.0 and MPICH 5.0 (16 ranks of one node), whatever the number of elements.
//! A rank that combines eight bytes of each of 15 others would spend two or three microseconds on it, while the
//! data themselves come in one. Longer ones are the library's, which has the processor's widest instructions.

use std::ffi::{CStr, c_void};

use crate::{AbiFamily, Handle, layout::BufferLayout};

/// Longer ones, in bytes, are left to the library.
const MAX_BYTES: u64 = 4096;
/// Elements from which on wide instructions are worth a look whether the processor has them.
#[cfg(target_arch = "x86_64")]
const MIN_WIDE: usize = 16;

/// How the elements of a datatype are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    F32,
    F64,
    I32,
    I64,
    U32,
    U64,
}

/// What an operation does to numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Sum,
    Product,
    Maximum,
    Minimum,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
}

const NUMBERS: usize = 10;
const OPERATIONS: usize = 7;

/// The handles of MPI's datatypes that are plain numbers, and of its operations on them; 0 where a library lacks one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArithmeticHandles {
    /// In the order of [`NUMBER_NAMES`].
    numbers: [Handle; NUMBERS],
    /// In the order of [`OPERATION_NAMES`].
    operations: [Handle; OPERATIONS],
}

/// C's and Fortran's, with Open MPI's variables and the handles of MPICH and of the ABI of MPI 5. Whether Fortran's
/// have the size that is meant here is looked at.
const NUMBER_NAMES: [(Number, &CStr, Handle, Handle); NUMBERS] = [
    (Number::F64, c"ompi_mpi_double", 0x4c00_080b, 0x214),
    (Number::F32, c"ompi_mpi_float", 0x4c00_040a, 0x210),
    (Number::I32, c"ompi_mpi_int", 0x4c00_0405, 0x209),
    (Number::I64, c"ompi_mpi_long", 0x4c00_0807, 0x20a),
    (Number::I64, c"ompi_mpi_long_long_int", 0x4c00_0809, 0x20b),
    (Number::U32, c"ompi_mpi_unsigned", 0x4c00_0406, 0x20d),
    (Number::U64, c"ompi_mpi_unsigned_long", 0x4c00_0808, 0x20e),
    (Number::F64, c"ompi_mpi_dblprec", 0x4c00_081f, 0x21c),
    (Number::F32, c"ompi_mpi_real", 0x4c00_041c, 0x21a),
    (Number::I32, c"ompi_mpi_integer", 0x4c00_041b, 0x219),
];

const OPERATION_NAMES: [(Arithmetic, &CStr, Handle, Handle); OPERATIONS] = [
    (Arithmetic::Sum, c"ompi_mpi_op_sum", 0x5800_0003, 0x21),
    (Arithmetic::Maximum, c"ompi_mpi_op_max", 0x5800_0001, 0x23),
    (Arithmetic::Minimum, c"ompi_mpi_op_min", 0x5800_0002, 0x22),
    (Arithmetic::Product, c"ompi_mpi_op_prod", 0x5800_0004, 0x24),
    (Arithmetic::BitwiseAnd, c"ompi_mpi_op_band", 0x5800_0006, 0x28),
    (Arithmetic::BitwiseOr, c"ompi_mpi_op_bor", 0x5800_0008, 0x29),
    (Arithmetic::BitwiseXor, c"ompi_mpi_op_bxor", 0x5800_000a, 0x2a),
];

impl ArithmeticHandles {
    /// Of a family; `variable` gives the address of a variable of the library.
    pub(crate) fn new(family: AbiFamily, variable: impl Fn(&CStr) -> *const c_void) -> Self {
        let handle = |name: &CStr, of_mpich, of_standard| match family {
            AbiFamily::OpenMpi => variable(name).addr(),
            AbiFamily::Mpich => of_mpich,
            AbiFamily::Standard => of_standard,
        };
        ArithmeticHandles {
            numbers: NUMBER_NAMES.map(|(_, name, mpich, standard)| handle(name, mpich, standard)),
            operations: OPERATION_NAMES
                .map(|(_, name, mpich, standard)| handle(name, mpich, standard)),
        }
    }

    /// Whether MPI defines the operation on the datatype, as far as both are known here. That takes no call of the
    /// library, and no look into a table.
    #[inline]
    pub fn is_defined(&self, operation: Handle, datatype: Handle) -> bool {
        self.find(operation, datatype).is_some()
    }

    #[inline]
    fn find(&self, operation: Handle, datatype: Handle) -> Option<NumberOperation> {
        if datatype == 0 || operation == 0 {
            return None;
        }
        let number = NUMBER_NAMES[self.numbers.iter().position(|known| *known == datatype)?].0;
        let place = self.operations.iter().position(|known| *known == operation)?;
        let operation = OPERATION_NAMES[place].0;
        let is_bitwise = matches!(
            operation,
            Arithmetic::BitwiseAnd | Arithmetic::BitwiseOr | Arithmetic::BitwiseXor
        );
        let is_float = matches!(number, Number::F32 | Number::F64);
        (!(is_bitwise && is_float)).then_some(NumberOperation { number, operation })
    }
}

/// What a reduction does to each pair of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberOperation {
    number: Number,
    operation: Arithmetic,
}

impl NumberOperation {
    /// Nothing where it is not known what the operation does to elements of this layout.
    pub fn find(
        handles: &ArithmeticHandles,
        layout: &BufferLayout,
        operation: Handle,
    ) -> Option<Self> {
        let found = handles.find(operation, layout.datatype)?;
        let bytes = match found.number {
            Number::F32 | Number::I32 | Number::U32 => 4,
            Number::F64 | Number::I64 | Number::U64 => 8,
        };
        (layout.is_dense() && layout.size == bytes).then_some(found)
    }

    /// Whether so many elements are few enough; see the [module](self).
    #[inline]
    pub fn takes(self, layout: &BufferLayout, count: u64) -> bool {
        count.saturating_mul(layout.size as u64) <= MAX_BYTES
    }

    /// `into = source op into` for one source after the other, as `MPI_Reduce_local`: of an unordered pair of maximum or
    /// minimum the second.
    ///
    /// # Safety
    /// All hold so many elements of the layout for which this was found; `into`, which is written, overlaps none.
    #[inline]
    pub unsafe fn combine(self, sources: &[*const u8], into: *mut u8, count: usize) {
        #[cfg(target_arch = "x86_64")]
        if count >= MIN_WIDE && is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has these instructions; else as this function's contract says.
            unsafe { self.combine_by_avx2(sources, into, count) };
            return;
        }
        // SAFETY: as this function's contract says.
        unsafe { self.combine_in_turn(sources, into, count) };
    }

    /// By instructions on four doubles at a time, which not every processor has.
    ///
    /// # Safety
    /// As [`NumberOperation::combine`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn combine_by_avx2(self, sources: &[*const u8], into: *mut u8, count: usize) {
        // SAFETY: as this function's contract says.
        unsafe { self.combine_in_turn(sources, into, count) };
    }

    /// # Safety
    /// As [`NumberOperation::combine`].
    #[inline(always)]
    unsafe fn combine_in_turn(self, sources: &[*const u8], into: *mut u8, count: usize) {
        // Several at a time: what is combined is read and written once for all of them.
        let (fours, rest) = sources.as_chunks::<4>();
        let (twos, ones) = rest.as_chunks::<2>();
        for some in fours {
            // SAFETY: as this function's contract says.
            unsafe { self.combine_some(*some, into, count) };
        }
        for some in twos {
            // SAFETY: as above.
            unsafe { self.combine_some(*some, into, count) };
        }
        for one in ones {
            // SAFETY: as above.
            unsafe { self.combine_some([*one], into, count) };
        }
    }

    /// # Safety
    /// As [`NumberOperation::combine`].
    #[inline(always)]
    unsafe fn combine_some<const N: usize>(
        self,
        sources: [*const u8; N],
        into: *mut u8,
        count: usize,
    ) {
        macro_rules! on {
            ($type:ty, $apply:expr) => {{
                let apply: fn($type, $type) -> $type = $apply;
                let sources = sources.map(|source| source.cast::<$type>());
                let into = into.cast::<$type>();
                for index in 0..count {
                    // SAFETY: `index` is below the number of elements, which an application may lay down
                    // unaligned (contract of this function).
                    unsafe {
                        let place = into.add(index);
                        let mut value = place.read_unaligned();
                        for source in sources {
                            value = apply(source.add(index).read_unaligned(), value);
                        }
                        place.write_unaligned(value);
                    }
                }
            }};
        }
        macro_rules! floats {
            ($type:ty) => {
                match self.operation {
                    Arithmetic::Sum => on!($type, |a, b| a + b),
                    Arithmetic::Product => on!($type, |a, b| a * b),
                    Arithmetic::Maximum => on!($type, |a, b| if a > b { a } else { b }),
                    Arithmetic::Minimum => on!($type, |a, b| if a < b { a } else { b }),
                    // Not found for these.
                    _ => {}
                }
            };
        }
        macro_rules! integers {
            ($type:ty) => {
                match self.operation {
                    Arithmetic::Sum => on!($type, |a, b| a.wrapping_add(b)),
                    Arithmetic::Product => on!($type, |a, b| a.wrapping_mul(b)),
                    Arithmetic::Maximum => on!($type, |a, b| a.max(b)),
                    Arithmetic::Minimum => on!($type, |a, b| a.min(b)),
                    Arithmetic::BitwiseAnd => on!($type, |a, b| a & b),
                    Arithmetic::BitwiseOr => on!($type, |a, b| a | b),
                    Arithmetic::BitwiseXor => on!($type, |a, b| a ^ b),
                }
            };
        }
        match self.number {
            Number::F32 => floats!(f32),
            Number::F64 => floats!(f64),
            Number::I32 => integers!(i32),
            Number::I64 => integers!(i64),
            Number::U32 => integers!(u32),
            Number::U64 => integers!(u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handles() -> ArithmeticHandles {
        ArithmeticHandles::new(AbiFamily::Mpich, |_| std::ptr::null())
    }

    fn combined<T: Copy>(datatype: Handle, operation: Handle, source: &[T], into: &[T]) -> Vec<T> {
        let layout = BufferLayout::plain(datatype, size_of::<T>() as u32);
        let found = NumberOperation::find(&handles(), &layout, operation).unwrap();
        assert!(found.takes(&layout, source.len() as u64));
        let mut into = into.to_vec();
        // SAFETY: both have so many elements.
        unsafe {
            found.combine(&[source.as_ptr().cast()], into.as_mut_ptr().cast(), source.len());
        }
        into
    }

    #[test]
    fn numbers_are_combined_as_mpi_says() {
        // So many that they go by wide instructions, where there are any.
        let many: Vec<i32> = (0..100).collect();
        let sums: Vec<i32> = many.iter().map(|it| 2 * it).collect();
        assert_eq!(combined(0x4c00_0405, 0x5800_0003, &many, &many), sums);
        let (doubles, others) = ([1.5, -2.0, 1e300], [2.0, -3.0, 1e10]);
        assert_eq!(combined(0x4c00_080b, 0x5800_0003, &doubles, &others), [3.5, -5.0, 1e300]);
        assert_eq!(
            combined(0x4c00_080b, 0x5800_0004, &doubles, &others),
            [3.0, 6.0, f64::INFINITY]
        );
        assert_eq!(combined(0x4c00_080b, 0x5800_0001, &doubles, &others), [2.0, -2.0, 1e300]);
        assert_eq!(combined(0x4c00_080b, 0x5800_0002, &doubles, &others), [1.5, -3.0, 1e10]);
        let (ints, others) = ([i32::MAX, -7, 12], [1, 3, 10]);
        assert_eq!(combined(0x4c00_0405, 0x5800_0003, &ints, &others), [i32::MIN, -4, 22]);
        assert_eq!(combined(0x4c00_0405, 0x5800_0006, &ints, &others), [1, 1, 8]);
        assert_eq!(combined(0x4c00_0405, 0x5800_0008, &ints, &others), [i32::MAX, -5, 14]);
        assert_eq!(combined(0x4c00_0406, 0x5800_000a, &[5_u32], &[6]), [3]);
        // As unsigned the first is the larger one.
        assert_eq!(combined(0x4c00_0808, 0x5800_0001, &[u64::MAX], &[1]), [u64::MAX]);
        assert_eq!(combined(0x4c00_0807, 0x5800_0001, &[-1_i64], &[1]), [1]);
        assert_eq!(combined(0x4c00_040a, 0x5800_0003, &[0.5_f32], &[1.0]), [1.5]);
    }

    /// However many there are at a time, each comes before what was combined already.
    #[test]
    fn several_are_combined_one_after_the_other() {
        let layout = BufferLayout::plain(0x4c00_080b, 8);
        for operation in [0x5800_0003, 0x5800_0001] {
            let found = NumberOperation::find(&handles(), &layout, operation).unwrap();
            for number in 0..12 {
                // Sums that depend on the order, and a maximum that does.
                let source =
                    |of: usize| [0.1 + of as f64, f64::NAN.copysign(of as f64), -0.3, 1e16];
                let sources: Vec<[f64; 4]> = (0..number).map(source).collect();
                let (mut at_once, mut one_by_one) = ([0.7, 1.0, 0.1, 1.0], [0.7, 1.0, 0.1, 1.0]);
                let places: Vec<*const u8> = sources.iter().map(|it| it.as_ptr().cast()).collect();
                // SAFETY: all have so many elements.
                unsafe { found.combine(&places, at_once.as_mut_ptr().cast(), 4) };
                for source in &sources {
                    for (value, other) in one_by_one.iter_mut().zip(source) {
                        *value = match operation == 0x5800_0003 {
                            true => *other + *value,
                            false if *other > *value => *other,
                            false => *value,
                        };
                    }
                }
                assert_eq!(at_once.map(f64::to_bits), one_by_one.map(f64::to_bits), "{number}");
            }
        }
    }

    #[test]
    fn all_else_is_the_librarys() {
        let find = |datatype, bytes, operation| {
            let layout = BufferLayout::plain(datatype, bytes);
            NumberOperation::find(&handles(), &layout, operation)
        };
        assert!(find(0x4c00_080b, 8, 0x5800_0003).is_some());
        for (datatype, bytes, operation) in [
            (0x4c00_080b, 8, 0x5800_0008), // doubles have no bits
            (0x4c00_080b, 8, 0x5800_0005), // MPI_LAND
            (0x4c00_081f, 4, 0x5800_0003), // a double precision of another size
            (0x4c00_0101, 1, 0x5800_0003), // MPI_CHAR
            (0x9c00_0001, 8, 0x5800_0003), // a type of the application's
            (0x4c00_080b, 8, 0x9800_0001), // an operation of the application's
            (0, 8, 0x5800_0003),
        ] {
            assert_eq!(find(datatype, bytes, operation), None, "{datatype:x} {operation:x}");
        }
        // A library that has told nothing.
        let layout = BufferLayout::plain(0, 8);
        assert_eq!(NumberOperation::find(&ArithmeticHandles::default(), &layout, 0), None);
        let layout = BufferLayout::plain(0x4c00_080b, 8);
        let found = find(0x4c00_080b, 8, 0x5800_0003).unwrap();
        assert!(found.takes(&layout, 512) && !found.takes(&layout, 513));
    }
}
