//! What exported choices rest on, in words.

use records::{
    Method, Point,
    choices::{Chosen, Evidence},
    quantity::format_bytes,
};
use verification::selection::TimedChoice;

/// Neighbouring sizes with the same method that rests on the same.
struct EvidenceRange<'a> {
    first: Point,
    last_bytes: u64,
    method: &'a Method,
    rests_on: Evidence,
    /// The least and the greatest speed-up, where they are known.
    speed_ups: Option<[f64; 2]>,
}

/// A line for each range of sizes at which the default is replaced: `fitted` is what the target is
/// told of `chosen`, point by point.
pub fn lines(chosen: &[&Chosen], fitted: &[TimedChoice]) -> Vec<String> {
    let mut stretches: Vec<EvidenceRange<'_>> = Vec::new();
    for (chosen, fitted) in chosen.iter().zip(fitted) {
        let next = stretch(chosen, fitted);
        match stretches.last_mut() {
            Some(last) if last.goes_on_with(&next) => last.extend(&next),
            _ => stretches.push(next),
        }
    }
    let replaced = stretches.iter().filter(|stretch| *stretch.method != Method::Default);
    replaced.map(EvidenceRange::line).collect()
}

fn stretch<'a>(chosen: &Chosen, fitted: &'a TimedChoice) -> EvidenceRange<'a> {
    // What stands in for a choice was measured or predicted as that was, but not confirmed.
    let rests_on = match fitted.method == chosen.method {
        true => chosen.rests_on,
        false => chosen.rests_on.min(Evidence::Measured),
    };
    let speed_up = chosen.default_seconds.map(|default| default / fitted.seconds);
    EvidenceRange {
        first: fitted.point,
        last_bytes: fitted.point.bytes,
        method: &fitted.method,
        rests_on,
        speed_ups: speed_up.map(|speed_up| [speed_up; 2]),
    }
}

impl EvidenceRange<'_> {
    fn goes_on_with(&self, next: &Self) -> bool {
        let of =
            |stretch: &Self| (stretch.first.collective, stretch.first.layout, stretch.rests_on);
        of(self) == of(next) && self.method == next.method
    }

    fn extend(&mut self, next: &Self) {
        self.last_bytes = next.last_bytes;
        self.speed_ups = self
            .speed_ups
            .zip(next.speed_ups)
            .map(|([least, most], [low, high])| [least.min(low), most.max(high)]);
    }

    /// `bcast on 8, 8 KiB to 64 KiB: own:pipeline (confirmed, 1.50 to 2.10 times as fast)`
    fn line(&self) -> String {
        let EvidenceRange {
            first: Point { collective, layout, bytes }, last_bytes, method, ..
        } = self;
        let sizes = match bytes == last_bytes {
            true => format_bytes(*bytes),
            false => format!("{} to {}", format_bytes(*bytes), format_bytes(*last_bytes)),
        };
        let rests_on = match self.rests_on {
            Evidence::Predicted => "predicted",
            Evidence::Measured => "measured",
            Evidence::Confirmed => "confirmed",
        };
        let gain = match self.speed_ups.map(|both| both.map(|one| format!("{one:.2}"))) {
            None => String::new(),
            Some([least, most]) if least == most => format!(", {least} times as fast"),
            Some([least, most]) => format!(", {least} to {most} times as fast"),
        };
        format!("{collective} on {layout}, {sizes}: {method} ({rests_on}{gain})")
    }
}

#[cfg(test)]
mod tests {
    use records::Collective;

    use super::*;

    #[test]
    fn neighbours_that_rest_on_the_same_are_one_line_and_the_default_is_none() {
        let cases = [
            (64, "own:binomial", "own:binomial", 2.0),
            (128, "own:binomial", "own:binomial", 1.0),
            (256, "default", "default", 4.0),
            (512, "own:pipeline", "own:linear", 2.0),
        ];
        let at = |bytes| Point::flat(Collective::Bcast, 8, bytes);
        let chosen = cases.map(|(bytes, method, _, seconds)| {
            let method = method.parse().unwrap();
            Chosen::new(at(bytes), method, (seconds, Some(4.0)), Evidence::Confirmed)
        });
        let fitted = cases.map(|(bytes, _, method, seconds)| TimedChoice {
            point: at(bytes),
            method: method.parse().unwrap(),
            seconds,
            default_seconds: 4.0,
        });
        let chosen: Vec<&Chosen> = chosen.iter().collect();
        assert_eq!(
            lines(&chosen, &fitted),
            [
                "bcast on 8, 64 B to 128 B: own:binomial (confirmed, 2.00 to 4.00 times as fast)",
                "bcast on 8, 512 B: own:linear (measured, 2.00 times as fast)",
            ]
        );
    }
}
