//! Which method a call gets: looked up in tables made once per size and layout of communicators.

mod ranges;

use records::{
    Collective, Layout, Method, Ranges,
    profile::{Profile, REPLACED},
};
use runner::Runnable;

/// What carries out a method in place of the library's.
///
/// # Errors
/// There is no such method, or it can't be had here.
pub fn runnable(collective: Collective, method: &Method) -> Result<Runnable, String> {
    if !REPLACED.contains(&collective) {
        let known = REPLACED.map(Collective::name).join(", ");
        return Err(format!(
            "{collective} is not among the collectives that are replaced ({known})"
        ));
    }
    let runnable = Runnable::new(collective, method).map_err(|error| error.to_string())?;
    runnable.ok_or_else(|| match method {
        Method::Plugin(_) => format!("{method}: plug-ins are measured, not carried out here"),
        Method::Other(_) => format!("{method}: was timed elsewhere; Colibri cannot run it"),
        Method::Native(_) => format!(
            "{method}: the preload library cannot select the MPI library's own algorithms; load \
             them by a rules file (colibri export)"
        ),
        _ => "default is not a replacement".into(),
    })
}

/// The methods of one collective on communicators of one size and layout: [`Ranges`] as a search finds them soonest.
#[derive(Debug)]
pub struct MethodTable {
    /// For each k, how many ranges begin at or below 2^k: a search is among those of one octave.
    octaves: [u32; 65],
    /// Ascending; beside `lasts` and `choices`, so that a search touches little memory.
    firsts: Box<[u64]>,
    lasts: Box<[u64]>,
    choices: Box<[Runnable]>,
}

impl Default for MethodTable {
    fn default() -> Self {
        MethodTable::new(Ranges::default())
    }
}

impl MethodTable {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// The method for a message, if it isn't the library's default.
    #[inline]
    pub fn find(&self, bytes: u64) -> Option<&Runnable> {
        let (low, high) = self.around(bytes);
        let among = self.firsts.get(low..high)?;
        let index = low + among.partition_point(|first| *first <= bytes);
        // Below 1 there is but the first range.
        let index = if bytes == 0 { usize::from(*self.firsts.first()? == 0) } else { index };
        let index = index.checked_sub(1)?;
        // The three have one length.
        match bytes <= *self.lasts.get(index)? {
            true => self.choices.get(index),
            false => None,
        }
    }

    /// Whether a message of a byte or more surely has the library's default: known without a search,
    /// where at most one range begins in its octave.
    #[inline(always)]
    pub fn has_none(&self, bytes: u64) -> bool {
        let (low, high) = self.around(bytes);
        let begun = match high.wrapping_sub(low) {
            0 => low,
            1 => match self.firsts.get(low) {
                Some(first) => low + usize::from(*first <= bytes),
                None => return false,
            },
            _ => return false,
        };
        begun == 0 || self.lasts.get(begun - 1).is_some_and(|last| bytes > *last)
    }

    /// Whether messages from `first` to `last` bytes have several methods, or one only some of them.
    pub fn changes_within(&self, first: u64, last: u64) -> bool {
        // `edge` and the next byte have different methods.
        let is_within = |edge: u64| first <= edge && edge < last;
        self.lasts.iter().any(|range_last| is_within(*range_last))
            || self
                .firsts
                .iter()
                .any(|range_first| range_first.checked_sub(1).is_some_and(is_within))
    }

    /// How many ranges begin at or below 2^k, and at or below 2^(k+1), around `bytes`.
    #[inline(always)]
    fn around(&self, bytes: u64) -> (usize, usize) {
        let octave = bytes.checked_ilog2().unwrap_or(0) as usize;
        (self.octaves[octave] as usize, self.octaves[octave + 1] as usize)
    }

    fn new(ranges: Ranges<Runnable>) -> Self {
        let octaves = std::array::from_fn(|power| {
            let end = 1_u64.checked_shl(power as u32).unwrap_or(u64::MAX);
            ranges.partition_point(|range| range.first_bytes <= end) as u32
        });
        MethodTable {
            octaves,
            firsts: ranges.iter().map(|range| range.first_bytes).collect(),
            lasts: ranges.iter().map(|range| range.last_bytes).collect(),
            choices: ranges.into_iter().map(|range| range.choice).collect(),
        }
    }
}

/// The methods of all collectives on communicators of one size and layout.
#[derive(Debug, Default)]
pub struct MethodTables {
    pub procs: u32,
    /// Which process is on which node, where that is known.
    pub layout: Option<Layout>,
    /// Whether all processes have the same settings; if not, everything is left to the library.
    pub agreed: bool,
    /// Whether every call is noted.
    pub watched: bool,
    by_collective: [MethodTable; Collective::ALL.len()],
}

impl MethodTables {
    /// `forced`: for all calls of a collective, a method or the library; `layout`: on which nodes the communicator's processes are, where a profile asks for it.
    pub fn new(
        forced: &[(Collective, Option<Runnable>)],
        profiles: &[Profile],
        procs: u32,
        layout: Option<Layout>,
        watched: bool,
    ) -> Self {
        let mut tables =
            MethodTables { procs, layout, agreed: true, watched, ..MethodTables::default() };
        for collective in REPLACED {
            let ranges = match forced.iter().find(|(other, _)| *other == collective) {
                Some((_, choice)) => {
                    let everywhere = choice.iter().map(|choice| (0, *choice)).collect();
                    Ranges::from_starts(everywhere, u64::MAX)
                }
                // Every method has been looked at when the profiles were read.
                None => ranges::ranges_for(profiles, collective, procs, layout)
                    .filter_map(|method| runnable(collective, method).ok()),
            };
            tables.by_collective[collective as usize] = MethodTable::new(ranges);
        }
        tables
    }

    /// Everything is left to the library.
    pub fn idle(procs: u32) -> Self {
        MethodTables { procs, ..MethodTables::default() }
    }

    /// Whether any call may get a method of ours.
    pub fn has_methods(&self) -> bool {
        self.by_collective.iter().any(|table| !table.is_empty())
    }

    #[inline]
    pub fn for_collective(&self, collective: Collective) -> &MethodTable {
        &self.by_collective[collective as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{
        SizeRange,
        profile::{OtherLayouts, OtherProcs},
    };

    fn profile(procs: u32, ranges: &[(u64, u64, &str)]) -> Profile {
        let range = |&(first, last, method): &(u64, u64, &str)| {
            SizeRange::new(first, last, method.parse::<Method>().unwrap())
        };
        let ranges: Vec<_> = ranges.iter().map(range).collect();
        Profile::new(Collective::Bcast, procs, ranges.try_into().unwrap())
    }

    fn found(profiles: &[Profile], procs: u32, nodes: Option<u32>, bytes: u64) -> Option<String> {
        let layout = nodes.map(|nodes| {
            Layout::from_nodes(&(0..procs).map(|rank| rank % nodes).collect::<Vec<_>>()).unwrap()
        });
        let tables = MethodTables::new(&[], profiles, procs, layout, false);
        tables
            .for_collective(Collective::Bcast)
            .find(bytes)
            .map(|choice| choice.method().to_string())
    }

    #[test]
    fn a_change_is_within_where_two_sizes_have_different_methods() {
        let ranges = [(1, 15, "own:linear"), (16, 40, "own:binomial"), (64, 127, "own:linear")];
        let tables = MethodTables::new(&[], &[profile(4, &ranges)], 4, None, false);
        let table = tables.for_collective(Collective::Bcast);
        let name = |bytes| table.find(bytes).map(|choice| choice.method().to_string());
        for (first, last) in [(0, 0), (1, 1), (8, 15), (16, 31), (32, 63), (64, 127), (128, 255)] {
            let has_several = (first..=last).any(|bytes| name(bytes) != name(first));
            assert_eq!(table.changes_within(first, last), has_several, "{first} to {last}");
        }
        assert!(table.changes_within(32, 63), "the rest of an octave has none");
        assert!(table.changes_within(8, 16));
    }

    #[test]
    fn only_the_size_that_was_measured_unless_the_profile_says_more() {
        let exact = [profile(4, &[(1, 100, "own:linear")])];
        assert_eq!(found(&exact, 4, None, 1).as_deref(), Some("own:linear"));
        assert_eq!(found(&exact, 4, None, 100).as_deref(), Some("own:linear"));
        for (procs, bytes) in [(4, 0), (4, 101), (3, 1), (5, 1)] {
            assert_eq!(found(&exact, procs, None, bytes), None, "{procs} {bytes}");
        }
        let mut below = [exact[0].clone(), profile(8, &[])];
        below[0].other_procs = OtherProcs::NearestBelow;
        assert_eq!(found(&below, 7, None, 1).as_deref(), Some("own:linear"));
        assert_eq!(found(&below, 3, None, 1), None, "nothing is below");
        assert_eq!(found(&below, 8, None, 1), None, "8 has a profile of its own");
        assert_eq!(found(&below, 9, None, 1), None, "8 is nearer, and exact");
    }

    #[test]
    fn between_two_sizes_holds_what_both_say() {
        let mut low = profile(4, &[(1, 100, "own:linear"), (101, 900, "own:binary")]);
        low.other_procs = OtherProcs::Interpolated;
        let high = profile(8, &[(50, 200, "own:linear"), (500, 2000, "own:binary")]);
        let both = [high, low];
        let at = |bytes| found(&both, 6, None, bytes);
        assert_eq!(at(49), None);
        assert_eq!(at(50).as_deref(), Some("own:linear"));
        assert_eq!(at(100).as_deref(), Some("own:linear"));
        assert_eq!(at(101), None);
        assert_eq!(at(500).as_deref(), Some("own:binary"));
        assert_eq!(at(901), None);
        assert_eq!(found(&both, 9, None, 60), None, "above the last");
    }

    #[test]
    fn a_profile_of_the_same_nodes_goes_before_one_of_any() {
        let any = profile(4, &[(1, 9, "own:linear")]);
        let mut two = profile(4, &[(1, 9, "own:binary")]);
        two.nodes = Some(2);
        let both = [any, two];
        assert_eq!(found(&both, 4, Some(2), 1).as_deref(), Some("own:binary"));
        assert_eq!(found(&both, 4, Some(1), 1).as_deref(), Some("own:linear"));
        assert_eq!(found(&both, 4, None, 1).as_deref(), Some("own:linear"));
    }

    #[test]
    fn layouts_of_one_size_have_profiles_of_their_own_and_others_the_nearest() {
        let of = |layout: &str, method| {
            let ranges = profile(4, &[(1, 9, method)]).ranges;
            Profile::of_layout(Collective::Bcast, layout.parse().unwrap(), ranges)
        };
        let any = profile(16, &[(1, 9, "own:pipeline")]);
        let mut all =
            vec![any, of("8x1", "own:linear"), of("8x4", "own:binary"), of("32", "own:binomial")];
        let at = |profiles: &[Profile], layout: &str| {
            let layout: Layout = layout.parse().unwrap();
            let tables = MethodTables::new(&[], profiles, layout.procs(), Some(layout), false);
            let found = tables.for_collective(Collective::Bcast).find(1);
            found.map(|choice| choice.method().to_string())
        };
        for (layout, method) in [
            ("8x4", Some("own:binary")),
            ("32x1", Some("own:binomial")),
            ("8", Some("own:linear")),
            ("8x4:cyclic", Some("own:binary")),
            ("8x3", Some("own:binary")),
            ("7+5+6", None),
            ("28", Some("own:binomial")),
            ("16x1", Some("own:linear")),
            ("64", None),
            ("4x1", None),
            ("2x8", Some("own:pipeline")),
        ] {
            assert_eq!(at(&all, layout).as_deref(), method, "{layout}");
        }
        all[2].other_layouts = OtherLayouts::Exact;
        assert_eq!(at(&all, "8x3"), None);
        assert_eq!(at(&all, "8x4").as_deref(), Some("own:binary"));
    }

    /// The short cut of the search finds what a plain search does.
    #[test]
    fn every_message_finds_its_range() {
        let choice = || runnable(Collective::Bcast, &"own:binomial".parse().unwrap()).unwrap();
        let ends = [0, 3, 4, 7, 8, 9, 15, 16, 100, 1 << 40, u64::MAX - 1];
        for step in 1..4 {
            let spans: Vec<_> = ends.iter().step_by(step).map(|end| (*end, *end + 1)).collect();
            let mut kept: Vec<(u64, u64)> = Vec::new();
            for span in spans {
                if kept.last().is_none_or(|last| last.1 < span.0) {
                    kept.push(span);
                }
            }
            let range = |&(first, last): &(u64, u64)| SizeRange::new(first, last, choice());
            let ranges: Vec<_> = kept.iter().map(range).collect();
            let table = MethodTable::new(ranges.try_into().unwrap());
            let near = ends.iter().flat_map(|end| [*end, end.saturating_add(1), end / 2, end / 3]);
            for bytes in near.chain([1, 2, 5, u64::MAX]) {
                let wanted = kept.iter().any(|span| (span.0..=span.1).contains(&bytes));
                assert_eq!(table.find(bytes).is_some(), wanted, "{bytes} in {kept:?}");
                assert!(bytes == 0 || !(table.has_none(bytes) && wanted), "{bytes} in {kept:?}");
            }
        }
    }

    /// What is forced goes before every profile, for every message.
    #[test]
    fn forced_methods_hold_everywhere() {
        let choice = runnable(Collective::Bcast, &"own:binomial".parse().unwrap()).unwrap();
        let forced = [(Collective::Bcast, Some(choice)), (Collective::Reduce, None)];
        let tables =
            MethodTables::new(&forced, &[profile(4, &[(0, 9, "own:linear")])], 4, None, false);
        for bytes in [0, 9, u64::MAX] {
            assert_eq!(
                tables.for_collective(Collective::Bcast).find(bytes).unwrap().method().to_string(),
                "own:binomial"
            );
        }
        assert!(tables.for_collective(Collective::Reduce).is_empty());
    }
}
