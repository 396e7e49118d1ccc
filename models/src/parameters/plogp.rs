use std::collections::BTreeSet;

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
    /// See [`PLogP::frame`].
    frame: Option<u64>,
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

    /// These parameters with how much longer a message was seen to take, which L + g(m) lacks: a switch that
    /// waits for a whole frame before it passes it on takes that long on top of the gap. And with the frames by
    /// which messages that leave a rank at once share its port.
    #[must_use]
    pub(super) fn end_to_end(self, parameters: &calibration::Parameters) -> Self {
        let frame = parameters.port_sharing.as_ref().and_then(|sharing| sharing.frame_bytes);
        let frame = frame.map(|frame| frame.value.round() as u64);
        let at_values = Self::at_ends(&parameters.plogp, [None; 4]);
        let transit = Transit::new(parameters, |bytes| at_values.gap(bytes));
        let mut whole = PLogP { transit, frame, ..self };
        // Round trips may be of sizes between the knots.
        let sizes: BTreeSet<u64> =
            whole.starts.all().map(|start| start as u64).chain(whole.transit.knots()).collect();
        let falls = |&(from, to): &(u64, u64)| {
            let seconds = |bytes: u64| whole.gap(bytes as f64) + whole.transit(bytes as f64);
            let is_inside = |&(low, high): &(u64, u64)| low <= from && to <= high;
            whole.falling.iter().any(is_inside) || seconds(to) < seconds(from)
        };
        let pieces = sizes.iter().copied().zip(sizes.iter().copied().skip(1));
        whole.falling = pieces.filter(falls).collect();
        whole
    }

    /// Bytes that a port sends of one message before it serves another one, from [`PLogP::end_to_end`]; none:
    /// whole messages, one after the other.
    #[inline]
    pub(crate) fn frame(&self) -> Option<u64> {
        self.frame
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

    /// g(m, k) by `gap`, which is g(m).
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
        self.starts.all().map(|start| start as u64).chain(self.transit.knots()).chain(self.frame)
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
        let (transit, frame) = (Transit::default(), None);
        PLogP { latency, starts, pieces, falling, destinations, sources, transit, frame }
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
mod tests;
