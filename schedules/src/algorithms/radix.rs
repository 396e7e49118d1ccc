//! The radix of algorithms that exist for 2 and for others.

use crate::Call;

/// A radix that is fixed (2 and more), or the call's fan-out (0).
pub(super) const fn radix<const FIXED: u32>(call: &Call<'_>) -> u32 {
    let wanted = if FIXED == 0 { call.fan_out } else { FIXED };
    // A larger one than there are ranks is as good as their number.
    let most = if wanted < call.ranks { wanted } else { call.ranks };
    if most < 2 { 2 } else { most }
}

/// Number of digits to a base of the numbers below `ranks`.
pub(super) const fn digits(ranks: u32, radix: u32) -> u32 {
    let (mut digits, mut weight) = (0, 1_u64);
    while weight < ranks as u64 {
        digits += 1;
        weight *= radix as u64;
    }
    digits
}

/// The weight of a digit.
pub(super) const fn weight(radix: u32, digit: u32) -> u64 {
    (radix as u64).pow(digit)
}
