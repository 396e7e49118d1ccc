//! Symbols: which contributions an element is made of.

use std::fmt;

use rustc_hash::FxHashMap;

/// No value yet.
pub(super) const UNDEFINED: u32 = 0;
/// A receive is under way.
pub(super) const IN_FLIGHT: u32 = 1;

/// One element of the contributions to a call of runs of ranks, `first..end` each, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Value {
    call: usize,
    index: u64,
    ranks: Vec<(u32, u32)>,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {} of", self.index)?;
        for (first, end) in &self.ranks {
            match end - first {
                1 => write!(f, " {first}")?,
                _ => write!(f, " {first}..{end}")?,
            }
        }
        match self.call {
            0 => Ok(()),
            call => write!(f, " in call {call}"),
        }
    }
}

/// Every value has one number, so that comparing and combining are quick.
pub(super) struct ValueTable {
    /// By call: whether operands may change places.
    commutative: Vec<bool>,
    list: Vec<Value>,
    /// Of one run: call, index, first, end. Nearly all are asked for by these.
    runs: FxHashMap<(usize, u64, u32, u32), u32>,
    /// Of several runs.
    numbers: FxHashMap<Value, u32>,
    sums: FxHashMap<(u32, u32), u32>,
}

impl ValueTable {
    pub fn new(commutative: Vec<bool>) -> Self {
        ValueTable {
            commutative,
            list: Vec::new(),
            runs: FxHashMap::default(),
            numbers: FxHashMap::default(),
            sums: FxHashMap::default(),
        }
    }

    fn number(&mut self, value: Value) -> u32 {
        if let [(first, end)] = value.ranks[..] {
            return self.of_ranks(value.call, value.index, first, end);
        }
        let next = self.next();
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.list.push(value.clone());
            next
        })
    }

    pub fn of_ranks(&mut self, call: usize, index: u64, first: u32, end: u32) -> u32 {
        let next = self.next();
        *self.runs.entry((call, index, first, end)).or_insert_with(|| {
            self.list.push(Value { call, index, ranks: vec![(first, end)] });
            next
        })
    }

    /// Two numbers are taken by [`UNDEFINED`] and [`IN_FLIGHT`].
    fn next(&self) -> u32 {
        self.list.len() as u32 + 2
    }

    pub fn show(&self, number: u32) -> String {
        match number {
            UNDEFINED => "nothing".into(),
            IN_FLIGHT => "a receive under way".into(),
            _ => self.list[number as usize - 2].to_string(),
        }
    }

    /// `left op right`; none if they don't belong together.
    pub fn combine(&mut self, left: u32, right: u32) -> Option<u32> {
        let known = self.sums.get(&(left, right));
        if let Some(sum) = known {
            return Some(*sum);
        }
        let (a, b) = (&self.list[left as usize - 2], &self.list[right as usize - 2]);
        if (a.call, a.index) != (b.call, b.index) {
            return None;
        }
        let (call, index, commutative) = (a.call, a.index, self.commutative[a.call]);
        let mut runs: Vec<_> = a.ranks.iter().chain(&b.ranks).copied().collect();
        if commutative {
            runs.sort_unstable();
        }
        let mut ranks: Vec<(u32, u32)> = Vec::with_capacity(runs.len());
        for (first, end) in runs {
            match ranks.last_mut() {
                Some(last) if last.1 == first => last.1 = end,
                Some(last) if commutative && last.1 > first => return None,
                _ => ranks.push((first, end)),
            }
        }
        let sum = self.number(Value { call, index, ranks });
        self.sums.insert((left, right), sum);
        Some(sum)
    }
}
