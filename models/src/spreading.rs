//! How soon all can have heard, if whoever has heard sends to new ranks whenever the port is free (Karp,
//! Sahay, Santos, Schauser, "Optimal broadcast and summation in the LogP model", SPAA'93).

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// How many ranks have heard by a time, and that time in seconds; both ascend.
type SpreadCurve = Vec<(f64, f64)>;

/// What has been asked for; decisions ask for the same with each number of ranks.
#[derive(Default)]
struct HeardTimes {
    /// By gap, trip and most sends.
    heard: HashMap<(u64, u64, u32), SpreadCurve>,
    /// Times in all of them.
    times: usize,
}

thread_local! {
    static KNOWN: RefCell<HeardTimes> = RefCell::default();
}

/// 16 MiB in each thread.
const MAX_TIMES: usize = 1 << 20;

/// Of more ranks no times are kept: there may be one for each rank.
const MAX_RANKS: u32 = 1 << 12;

/// When the last of so many ranks can have heard, if whoever knows sends to another one every `gap`, to
/// `most` of them (0: to any number), and that one knows `trip` later. All in seconds.
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
    if ranks > MAX_RANKS {
        let mut last = trip;
        hearing(missing, gap, trip, most, |_, at| last = at);
        return last;
    }
    KNOWN.with_borrow_mut(|known| {
        if known.times > MAX_TIMES {
            *known = HeardTimes::default();
        }
        let heard = known.heard.entry((gap.to_bits(), trip.to_bits(), most)).or_default();
        if heard.last().is_none_or(|(ranks, _)| *ranks < missing) {
            // Others are asked for soon.
            let ranks = ranks.next_power_of_two().max(64);
            known.times -= heard.len();
            heard.clear();
            let keep = |ranks, at| heard.push((ranks, at));
            hearing(f64::from(ranks) - 1.0, gap, trip, most, keep);
            known.times += heard.len();
        }
        heard[heard.partition_point(|(ranks, _)| *ranks < missing)].1
    })
}

/// Tells how many have heard beside the first, and when, until so many have.
///
/// A rank hears after some trips and some gaps; as many ranks hear after j trips and a gaps as there
/// are ways to write a as a sum of j numbers, all below `most`.
fn hearing(missing: f64, gap: f64, trip: f64, most: u32, mut tell: impl FnMut(f64, f64)) {
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
        tell(heard, f64::from_bits(at));
        if heard >= missing {
            return;
        }
        if number > 0.0 {
            next.push(Reverse((time(trips, gaps + 1), trips, gaps + 1)));
        }
        if gaps == 0 {
            ways.push(vec![1.0]);
            next.push(Reverse((time(trips + 1, 0), trips + 1, 0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks that have heard, by asking rank after rank.
    fn one_by_one(ranks: u32, gap: f64, trip: f64, most: u32) -> f64 {
        let mut next = BinaryHeap::from([Reverse((trip.to_bits(), 1))]);
        let mut last = 0.0;
        for _ in 1..ranks {
            let Some(Reverse((at, nth))) = next.pop() else { break };
            last = f64::from_bits(at);
            next.push(Reverse(((last + trip).to_bits(), 1)));
            if most == 0 || nth < most {
                next.push(Reverse(((last + gap).to_bits(), nth + 1)));
            }
        }
        last
    }

    /// Also where fewer, and more, were asked for before.
    #[test]
    fn the_last_rank_hears_as_early_as_rank_after_rank() {
        for (gap, trip) in [(1.0, 1.0), (0.07, 1.19), (3.0, 2.0), (1e-3, 1.0)] {
            for most in [0, 2, 3, 16] {
                for ranks in [40, 2, 3, 1000, 17, 64, 65, 999, 5000] {
                    let (told, wanted) =
                        (spreading(ranks, gap, trip, most), one_by_one(ranks, gap, trip, most));
                    let context = format!("{ranks} ranks, {gap}, {trip}, {most}");
                    assert!((told - wanted).abs() <= 1e-9 * wanted, "{told} {wanted}: {context}");
                }
            }
        }
    }

    #[test]
    fn what_is_kept_is_limited() {
        let alone = spreading(1000, 1e-6, 1.0, 0);
        for step in 1..3000 {
            spreading(1000, 1e-6 * f64::from(step), 1.0, 0);
            KNOWN.with_borrow(|known| assert!(known.times < MAX_TIMES + 2000));
        }
        assert_eq!(spreading(1000, 1e-6, 1.0, 0), alone);
    }
}
