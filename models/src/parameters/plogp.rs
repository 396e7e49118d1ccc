use records::calibration::{self, Estimate};

use super::{End, ParametersError, at_end, partners::Partners, starts::Starts, transit::Transit};

/// What PLogP knows of one message size, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageCosts {
    /// os(m).
    pub send: f64,
    /// or(m).
    pub receive: f64,
    /// g(m).
    pub gap: f64,
}

/// PLogP's costs at one measured size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knot {
    /// The message size.
    pub bytes: u64,
    /// What it costs.
    pub costs: MessageCosts,
}

/// PLogP's parameters: L and, between knots, linear functions of the message size.
///
/// Below the first knot the first knot's costs hold. Beyond the last the line through the last
/// two goes on; where noise makes it fall, the last knot's cost holds, since no larger message is
/// cheaper, and no cost ever gets negative.
#[derive(Debug, Clone, PartialEq)]
pub struct PLogP {
    latency: f64,
    /// Where each piece but the first begins.
    starts: Starts,
    /// Per piece, the costs at its start and per further byte. One more than starts: the first
    /// holds below all of them.
    pieces: Vec<Piece>,
    falling: Vec<(u64, u64)>,
    destinations: Partners,
    sources: Partners,
    /// How much longer than L + g(m) a message was seen to take; nothing where nobody asked.
    transit: Transit,
}

/// In a line of the cache of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Piece {
    start: f64,
    costs: MessageCosts,
    slopes: MessageCosts,
}

const FLAT: MessageCosts = MessageCosts { send: 0.0, receive: 0.0, gap: 0.0 };

impl PLogP {
    /// From L and the knots.
    ///
    /// # Errors
    /// There is no knot, or the knots do not ascend in size.
    pub fn new(latency: f64, knots: &[Knot]) -> Result<Self, ParametersError> {
        let error =
            |field: String, problem: &str| ParametersError { field, problem: problem.into() };
        if knots.is_empty() {
            return Err(error("knots".into(), "is empty; expected at least one message size"));
        }
        if let Some(index) = knots.windows(2).position(|pair| pair[1].bytes <= pair[0].bytes) {
            let field = format!("knots[{}].bytes", index + 1);
            return Err(error(field, "does not ascend; expected larger than the one before"));
        }
        let tail = match knots {
            [.., before, last] => slopes(before, last).map(|slope| slope.max(0.0)),
            _ => FLAT,
        };
        Ok(Self::with_tail(latency, knots, tail))
    }

    /// L, end to end.
    #[inline]
    pub fn latency(&self) -> f64 {
        self.latency
    }

    /// os(m), or(m) and g(m).
    #[inline]
    pub fn at(&self, bytes: f64) -> MessageCosts {
        let piece = &self.pieces[self.starts.up_to(bytes)];
        let beyond = bytes - piece.start;
        MessageCosts {
            send: piece.costs.send + beyond * piece.slopes.send,
            receive: piece.costs.receive + beyond * piece.slopes.receive,
            gap: piece.costs.gap + beyond * piece.slopes.gap,
        }
    }

    /// g(m) alone.
    #[inline]
    pub fn gap(&self, bytes: f64) -> f64 {
        let piece = &self.pieces[self.starts.up_to(bytes)];
        piece.costs.gap + (bytes - piece.start) * piece.slopes.gap
    }

    /// Time of a message of `bytes`: L + g(m).
    #[inline]
    pub fn message(&self, bytes: f64) -> f64 {
        self.latency + self.gap(bytes)
    }

    /// The same with how much longer a message was seen to take, which L + g(m) lacks: a switch that
    /// waits for a whole frame before it passes it on takes that long on top of the gap.
    #[must_use]
    pub(super) fn end_to_end(self, parameters: &calibration::Parameters) -> Self {
        PLogP { transit: Transit::new(parameters), ..self }
    }

    /// Seconds that a message takes longer than L + g(m), from [`PLogP::end_to_end`]; else 0.
    #[inline]
    pub(crate) fn transit(&self, bytes: f64) -> f64 {
        self.transit.at(bytes)
    }

    /// g(m, k): least time between rounds in which this rank sends `bytes` to each of `partners`
    /// others; k g(m) where it was not measured.
    #[inline]
    pub fn gap_to(&self, bytes: f64, partners: u32) -> f64 {
        self.gap_to_by(self.gap(bytes), bytes, partners)
    }

    /// The same where g(m) is known.
    #[inline]
    pub(crate) fn gap_to_by(&self, gap: f64, bytes: f64, partners: u32) -> f64 {
        f64::from(partners) * gap * self.destinations.factor(bytes, partners)
    }

    /// g(m, k): least time between rounds in which each of `partners` others sends `bytes` to this
    /// rank; k g(m) where it was not measured.
    #[inline]
    pub fn gap_from(&self, bytes: f64, partners: u32) -> f64 {
        f64::from(partners) * self.gap(bytes) * self.sources.factor(bytes, partners)
    }

    /// The numbers of partners, to send to or to receive from, with which a gap was measured.
    pub(crate) fn partners(&self) -> impl Iterator<Item = u32> {
        self.destinations.measured().chain(self.sources.measured())
    }

    /// The measured sizes.
    pub(super) fn knots(&self) -> impl Iterator<Item = u64> {
        self.starts.all().map(|start| start as u64).chain(self.transit.knots())
    }

    /// The pieces between two knots in which some cost falls.
    pub(crate) fn falling(&self) -> &[(u64, u64)] {
        &self.falling
    }

    /// L, os, or and g at their values or at an end of their intervals.
    pub(crate) fn at_ends(plogp: &calibration::PLogPEstimates, ends: [Option<End>; 4]) -> Self {
        let [latency, send, receive, gap] = ends;
        let knots: Vec<Knot> = plogp
            .knots
            .iter()
            .map(|knot| Knot {
                bytes: knot.bytes,
                costs: MessageCosts {
                    send: at_end(knot.send_overhead_seconds, send),
                    receive: at_end(knot.receive_overhead_seconds, receive),
                    gap: at_end(knot.gap_seconds, gap),
                },
            })
            .collect();
        let tail = match plogp.knots.as_slice() {
            [.., before, last] => {
                let bytes = (last.bytes - before.bytes) as f64;
                let tail = |of: fn(&calibration::PLogPKnot) -> Estimate, end| {
                    tail_slope(of(before), of(last), bytes, end)
                };
                MessageCosts {
                    send: tail(|knot| knot.send_overhead_seconds, send),
                    receive: tail(|knot| knot.receive_overhead_seconds, receive),
                    gap: tail(|knot| knot.gap_seconds, gap),
                }
            }
            _ => FLAT,
        };
        let alone = Self::with_tail(at_end(plogp.latency_seconds, latency), &knots, tail);
        // Relative to g(m) at its value: an error of g(m) is not one of the partners' effect.
        let values = match ends {
            [None, None, None, None] => alone.clone(),
            _ => Self::at_ends(
                &calibration::PLogPEstimates::new(plogp.latency_seconds, plogp.knots.clone()),
                [None; 4],
            ),
        };
        let relative =
            |gaps: &[calibration::ManyGap]| Partners::new(gaps, |bytes| values.gap(bytes));
        PLogP {
            destinations: relative(&plogp.gap_by_destinations),
            sources: relative(&plogp.gap_by_sources),
            ..alone
        }
    }

    /// Parameters of which no cost is above that of `self` or of any of the others, which have the same
    /// knots, and none falls while the size grows. Further partners do no more than they do to `self`.
    pub(super) fn least(&self, others: &[PLogP]) -> Self {
        let least_at = |piece: &Piece, of: fn(&Piece) -> MessageCosts, index: usize| {
            others.iter().map(|other| of(&other.pieces[index])).fold(of(piece), MessageCosts::min)
        };
        let mut knots: Vec<Knot> = Vec::with_capacity(self.pieces.len());
        let mut tail = FLAT;
        for (index, piece) in self.pieces.iter().enumerate() {
            let costs = least_at(piece, |piece| piece.costs, index);
            knots.push(Knot { bytes: piece.start as u64, costs });
            tail = least_at(piece, |piece| piece.slopes, index);
        }
        for index in (1..knots.len()).rev() {
            knots[index - 1].costs = knots[index - 1].costs.min(knots[index].costs);
        }
        // The first piece is what holds below the first knot.
        knots.remove(0);
        let latency = others.iter().map(|other| other.latency).fold(self.latency, f64::min);
        PLogP {
            destinations: self.destinations.clone().rising(),
            sources: self.sources.clone().rising(),
            ..Self::with_tail(latency, &knots, tail)
        }
    }

    /// Parameters of which no cost is above that of `self`, and none grows by a greater factor than the
    /// message does.
    pub(super) fn shrinking_per_byte(&self) -> Self {
        let mut knots: Vec<Knot> = Vec::with_capacity(self.pieces.len());
        // The first piece is what holds below the first knot.
        for piece in &self.pieces[1..] {
            let mut knot = Knot { bytes: piece.start as u64, costs: piece.costs };
            if let Some(before) = knots.last().filter(|before| before.bytes > 0) {
                let growth = piece.start / before.bytes as f64;
                knot.costs = knot.costs.min(before.costs.map(|cost| cost * growth));
            }
            knots.push(knot);
        }
        let mut tail = self.pieces.last().map_or(FLAT, |piece| piece.slopes);
        if let Some(last) = knots.last().filter(|last| last.bytes > 0) {
            tail = tail.min(last.costs.map(|cost| cost / last.bytes as f64));
        }
        PLogP {
            destinations: self.destinations.clone().falling(),
            sources: self.sources.clone().falling(),
            ..Self::with_tail(self.latency, &knots, tail)
        }
    }

    fn with_tail(latency: f64, knots: &[Knot], tail: MessageCosts) -> Self {
        let below = knots.first().map_or(FLAT, |first| first.costs);
        let mut pieces = vec![Piece { start: 0.0, costs: below, slopes: FLAT }];
        let mut falling = Vec::new();
        for (index, knot) in knots.iter().enumerate() {
            let slopes = match knots.get(index + 1) {
                Some(next) => {
                    let slopes = slopes(knot, next);
                    if slopes.send.min(slopes.receive).min(slopes.gap) < 0.0 {
                        falling.push((knot.bytes, next.bytes));
                    }
                    slopes
                }
                None => tail,
            };
            pieces.push(Piece { start: knot.bytes as f64, costs: knot.costs, slopes });
        }
        let starts = Starts::new(knots.iter().map(|knot| knot.bytes as f64).collect());
        let (destinations, sources) = (Partners::default(), Partners::default());
        let transit = Transit::default();
        PLogP { latency, starts, pieces, falling, destinations, sources, transit }
    }
}

impl MessageCosts {
    fn min(self, other: Self) -> Self {
        MessageCosts {
            send: self.send.min(other.send),
            receive: self.receive.min(other.receive),
            gap: self.gap.min(other.gap),
        }
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        MessageCosts {
            send: change(self.send),
            receive: change(self.receive),
            gap: change(self.gap),
        }
    }
}

fn slopes(from: &Knot, to: &Knot) -> MessageCosts {
    let bytes = (to.bytes - from.bytes) as f64;
    MessageCosts {
        send: (to.costs.send - from.costs.send) / bytes,
        receive: (to.costs.receive - from.costs.receive) / bytes,
        gap: (to.costs.gap - from.costs.gap) / bytes,
    }
}

/// The slope beyond the last knot, at its value or at an end of its own interval.
///
/// The last two knots err independently of each other, so the slope is less certain than either:
/// lines through both lower ends and both upper ends could even cross.
fn tail_slope(before: Estimate, last: Estimate, bytes: f64, end: Option<End>) -> f64 {
    let slope = (last.value - before.value) / bytes;
    let error = match end {
        None => 0.0,
        Some(End::Low) => -f64::hypot(last.value - last.low, before.high - before.value),
        Some(End::High) => f64::hypot(last.high - last.value, before.value - before.low),
    };
    (slope.max(0.0) + error / bytes).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn knot(bytes: u64, gap: f64) -> Knot {
        Knot { bytes, costs: MessageCosts { send: gap / 4.0, receive: gap / 2.0, gap } }
    }

    #[test]
    fn it_is_linear_between_knots_and_beyond() {
        let plogp = PLogP::new(5.0, &[knot(1, 10.0), knot(11, 20.0), knot(21, 50.0)]).unwrap();
        for (bytes, gap) in
            [(0.0, 10.0), (1.0, 10.0), (6.0, 15.0), (11.0, 20.0), (21.0, 50.0), (31.0, 80.0)]
        {
            assert_eq!(plogp.gap(bytes), gap, "{bytes}");
            assert_eq!(plogp.at(bytes), knot(0, gap).costs, "{bytes}");
            assert_eq!(plogp.message(bytes), 5.0 + gap, "{bytes}");
        }
    }

    #[test]
    fn one_knot_holds_everywhere_and_a_falling_end_does_not_go_on() {
        assert_eq!(PLogP::new(0.0, &[knot(8, 3.0)]).unwrap().gap(1e9), 3.0);
        let falling = PLogP::new(0.0, &[knot(0, 9.0), knot(8, 3.0)]).unwrap();
        assert_eq!(falling.gap(4.0), 6.0);
        assert_eq!(falling.gap(1e9), 3.0);
        assert_eq!(falling.falling(), [(0, 8)]);
    }

    #[test]
    fn knots_that_are_missing_or_do_not_ascend_are_refused() {
        assert!(PLogP::new(0.0, &[]).unwrap_err().to_string().contains("at least one"));
        let error = PLogP::new(0.0, &[knot(8, 1.0), knot(8, 2.0)]).unwrap_err();
        assert_eq!(error.field, "knots[1].bytes");
    }

    #[test]
    fn the_interval_widens_beyond_the_last_knot() {
        let exact = Estimate::exact(0.0);
        let knot = |bytes, value: f64| calibration::PLogPKnot {
            bytes,
            send_overhead_seconds: exact,
            receive_overhead_seconds: exact,
            gap_seconds: Estimate { value, low: value * 0.99, high: value * 1.01 },
        };
        let plogp = calibration::PLogPEstimates::new(exact, vec![knot(100, 1.0), knot(200, 2.0)]);
        let gap = |end| PLogP::at_ends(&plogp, [None, None, None, end]).gap(1000.0);
        let (low, value, high) = (gap(Some(End::Low)), gap(None), gap(Some(End::High)));
        assert!((value - 10.0).abs() < 1e-12);
        // 8 times the distance of the last two knots beyond: 2 % + 8 x hypot(2 %, 1 %).
        let wanted = 0.02 + 8.0 * f64::hypot(0.02, 0.01);
        assert!((high - value - wanted).abs() < 1e-12, "{high}");
        assert!((value - low - wanted).abs() < 1e-12, "{low}");
    }

    /// An error of g(m) moves g(m, k) with it, and does not look like an effect of the partners.
    #[test]
    fn partners_scale_the_gap() {
        let exact = Estimate::exact(0.0);
        let mut plogp = calibration::PLogPEstimates::new(
            exact,
            vec![calibration::PLogPKnot {
                bytes: 8,
                send_overhead_seconds: exact,
                receive_overhead_seconds: exact,
                gap_seconds: Estimate { value: 2.0, low: 1.0, high: 3.0 },
            }],
        );
        let knots = vec![calibration::GapKnot { bytes: 8, gap_seconds: Estimate::exact(12.0) }];
        plogp.gap_by_destinations = vec![calibration::ManyGap { partners: 3, knots }];
        let at = |end| PLogP::at_ends(&plogp, [None, None, None, end]);
        assert_eq!([1, 2, 3, 4].map(|k| at(None).gap_to(8.0, k)), [2.0, 6.0, 12.0, 16.0]);
        assert_eq!([1, 2, 3, 4].map(|k| at(None).gap_from(8.0, k)), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!([End::Low, End::High].map(|end| at(Some(end)).gap_to(8.0, 3)), [6.0, 18.0]);
    }

    proptest! {
        #[test]
        fn no_cost_is_negative_and_every_knot_is_met(
            gaps in proptest::collection::vec(0.0..1.0_f64, 1..60),
            bytes in 0.0..1e7_f64,
        ) {
            let knots: Vec<Knot> =
                gaps.iter().enumerate().map(|(i, gap)| knot(i as u64 * 1000, *gap)).collect();
            let plogp = PLogP::new(0.1, &knots).unwrap();
            for knot in &knots {
                prop_assert_eq!(plogp.at(knot.bytes as f64), knot.costs);
            }
            let costs = plogp.at(bytes);
            prop_assert!(costs.gap >= 0.0 && costs.send >= 0.0 && costs.receive >= 0.0);
            prop_assert_eq!(plogp.gap(bytes), costs.gap);
        }
    }
}
