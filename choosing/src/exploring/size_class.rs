//! Message sizes that are one to the explorer.

/// Message sizes that are one to the explorer: nothing, or from a power of two up to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// How many classes there are.
    pub const COUNT: usize = 65;

    /// The class of a message.
    pub fn of(bytes: u64) -> Self {
        SizeClass(bytes.checked_ilog2().map_or(0, |power| power as u8 + 1))
    }

    /// From 0 to [`Self::COUNT`] - 1, by size.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The least message of the class, in bytes.
    pub fn first_bytes(self) -> u64 {
        self.0.checked_sub(1).map_or(0, |power| 1 << power)
    }

    /// The largest.
    pub fn last_bytes(self) -> u64 {
        self.0.checked_sub(1).map_or(0, |power| u64::MAX >> (63 - power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_go_from_a_power_of_two_to_the_next() {
        for (bytes, first, last) in
            [(0, 0, 0), (1, 1, 1), (2, 2, 3), (3, 2, 3), (4, 4, 7), (u64::MAX, 1 << 63, u64::MAX)]
        {
            let class = SizeClass::of(bytes);
            assert_eq!((class.first_bytes(), class.last_bytes()), (first, last), "{bytes} bytes");
            assert!(class.index() < SizeClass::COUNT);
        }
    }
}
