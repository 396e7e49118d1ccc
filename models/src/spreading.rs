//! How soon all can have heard, if whoever has heard sends to new ranks whenever the port is free (Karp,
//! Sahay, Santos, Schauser, "Optimal broadcast and summation in the LogP model", SPAA'93).

use std::{cmp::Reverse, collections::BinaryHeap};

/// When the last of so many ranks can have heard, if whoever knows sends to another one every `gap`, to
/// `most` of them (0: to any number), and that one knows `trip` later.
///
/// A rank hears after some trips and some gaps; as many ranks hear after j trips and a gaps as there
/// are ways to write a as a sum of j numbers, all below `most`.
pub(crate) fn spreading(ranks: u32, gap: f64, trip: f64, most: u32) -> f64 {
    let missing = f64::from(ranks) - 1.0;
    if missing <= 0.0 {
        return 0.0;
    }
    if most == 1 {
        return missing * trip;
    }
    if gap <= 0.0 && most == 0 {
        return trip;
    }
    // Positive times are in the order of their bits.
    let time = |trips: u32, gaps: u32| (f64::from(trips) * trip + f64::from(gaps) * gap).to_bits();
    // By trips and gaps, of as many trips as have been met.
    let mut ways: Vec<Vec<f64>> = vec![vec![1.0], vec![1.0]];
    let mut next = BinaryHeap::from([Reverse((time(1, 0), 1_u32, 0_u32))]);
    let mut heard = 0.0;
    while let Some(Reverse((at, trips, gaps))) = next.pop() {
        let (row, place) = (trips as usize, gaps as usize);
        let number = match most {
            _ if gaps == 0 => 1.0,
            // C(a + j - 1, j - 1) = C(a + j - 2, j - 1) (a + j - 1) / a.
            0 => ways[row][place - 1] * f64::from(gaps + trips - 1) / f64::from(gaps),
            // One more in the sum's last number than for a - 1, but for what is too many there.
            most => {
                let of = |row: usize, place: usize| ways[row].get(place).copied().unwrap_or(0.0);
                let too_many = place.checked_sub(most as usize);
                of(row, place - 1) + of(row - 1, place)
                    - too_many.map_or(0.0, |too_many| of(row - 1, too_many))
            }
        };
        if gaps > 0 {
            ways[row].push(number);
        }
        heard += number;
        if heard >= missing {
            return f64::from_bits(at);
        }
        if number > 0.0 {
            next.push(Reverse((time(trips, gaps + 1), trips, gaps + 1)));
        }
        if gaps == 0 {
            ways.push(vec![1.0]);
            next.push(Reverse((time(trips + 1, 0), trips + 1, 0)));
        }
    }
    trip
}
