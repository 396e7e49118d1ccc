//! Which message sizes are left where there are too many.

use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Layout, Method, Point, plan::Cell};

/// About half as many of the sizes as are `left`, evenly spread, the first and the last among them.
pub fn fewer(of: &[u64], left: usize) -> Vec<u64> {
    spread(of, left / 2 + 1)
}

/// So many of the sizes, evenly spread, the first and the last among them.
pub fn spread(sizes: &[u64], count: usize) -> Vec<u64> {
    if count >= sizes.len() || count < 2 {
        return sizes.to_vec();
    }
    let (steps, last) = (count - 1, sizes.len() - 1);
    (0..=steps).map(|step| sizes[(step * last + steps / 2) / steps]).collect()
}

/// What was measured of a collective on a layout.
#[derive(Default)]
struct SizesAndMethods<'a> {
    methods: BTreeSet<&'a Method>,
    sizes: BTreeSet<u64>,
}

/// What was measured somewhere on a layout, at those `sizes` between the least and the greatest measured
/// there that were left out.
pub fn left_out(cells: &[Cell], sizes: &[u64]) -> Vec<Cell> {
    let mut measured: BTreeMap<(Collective, Layout), SizesAndMethods<'_>> = BTreeMap::new();
    for Cell { point, method } in cells {
        let here = measured.entry(point.line()).or_default();
        here.methods.insert(method);
        here.sizes.insert(point.bytes);
    }
    let mut left_out = Vec::new();
    for ((collective, layout), here) in measured {
        for bytes in here.left_out_between(sizes) {
            let sensible = here.methods.iter().filter(|of| of.segment_bytes() < bytes.max(1));
            let point = Point { collective, layout, bytes };
            let cell = |method: &&Method| Cell { point, method: (*method).clone() };
            left_out.extend(sensible.map(cell));
        }
    }
    left_out
}

impl SizesAndMethods<'_> {
    /// Those of `sizes` between the first and the last measured that were not.
    fn left_out_between(&self, sizes: &[u64]) -> Vec<u64> {
        let range = self.sizes.first().zip(self.sizes.last());
        let is_inside =
            |bytes: &u64| range.is_some_and(|(first, last)| first < bytes && bytes < last);
        let inside = sizes.iter().copied().filter(is_inside);
        inside.filter(|bytes| !self.sizes.contains(bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_evenly_spread_and_keeps_the_ends() {
        let of = |count: usize, left| fewer(&(0..count as u64).collect::<Vec<_>>(), left);
        assert_eq!(of(4, 4), [0, 2, 3]);
        assert_eq!(of(3, 3), [0, 2]);
        assert_eq!(of(10, 10), [0, 2, 4, 5, 7, 9]);
        assert_eq!(of(10, 6), [0, 3, 6, 9]);
        assert_eq!(of(21, 11), [0, 4, 8, 12, 16, 20]);
        assert_eq!((of(2, 2), of(1, 1)), (vec![0, 1], vec![0]));
    }

    #[test]
    fn sizes_between_measured_ones_have_the_methods_measured_there() {
        let cell = |collective, method: &str, bytes| Cell {
            point: Point::flat(collective, 8, bytes),
            method: method.parse().unwrap(),
        };
        let bcast = |method, bytes| cell(Collective::Bcast, method, bytes);
        let cells = [
            bcast("default", 4),
            bcast("native:openmpi:linear", 4),
            bcast("default", 65536),
            bcast("native:openmpi:pipeline,segment=8KiB", 65536),
            cell(Collective::Reduce, "default", 16),
        ];
        let found = left_out(&cells, &[1, 4, 256, 16384, 65536, 1 << 20]);
        let names: Vec<(String, u64)> =
            found.iter().map(|cell| (cell.method.to_string(), cell.point.bytes)).collect();
        let expected = [
            ("default", 256),
            ("native:openmpi:linear", 256),
            ("default", 16384),
            ("native:openmpi:linear", 16384),
            ("native:openmpi:pipeline,segment=8KiB", 16384),
        ];
        assert_eq!(names, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
        assert!(found.iter().all(|cell| cell.point.collective == Collective::Bcast));
    }
}
