//! What exported choices rest on, in words.

use libraries::Comment;
use records::{
    Method, Point,
    choices::{Chosen, Evidence},
    confirmed::{PairedSpeedUp, sizes},
};

/// What a choice rests on.
#[derive(Clone, Copy, PartialEq)]
enum Basis {
    Confirmed(PairedSpeedUp),
    Unconfirmed(Evidence),
    /// Another layout, which the target does not tell apart from this one.
    OtherLayout,
}

impl Basis {
    fn of(chosen: &Chosen) -> Self {
        match (chosen.by_other_layout, chosen.confirmed) {
            (true, _) => Basis::OtherLayout,
            (false, Some(confirmed)) => Basis::Confirmed(confirmed),
            (false, None) => Basis::Unconfirmed(chosen.rests_on),
        }
    }
}

/// A line for each range of sizes at which the default is replaced by what is exported: neighbouring sizes with the
/// same method that rests on the same.
pub fn lines(exported: &[Chosen]) -> Vec<Comment> {
    let of = |one: &Chosen| (one.point.line(), Basis::of(one), one.method.clone());
    let runs = exported.chunk_by(|one, next| of(one) == of(next));
    runs.filter(|run| run[0].method != Method::Default).map(comment).collect()
}

/// `bcast on 8, 8 KiB to 64 KiB: own:pipeline (confirmed by 4 pairs of jobs: 1.80 times as fast, 95 % interval
/// 1.62 to 1.99)`
fn comment(run: &[Chosen]) -> Comment {
    let Point { collective, layout, bytes } = run[0].point;
    let sizes = sizes(bytes, run[run.len() - 1].point.bytes);
    let text = format!("{collective} on {layout}, {sizes}: {} ({})", run[0].method, why(run));
    Comment { of: Some((collective, layout)), text }
}

fn why(run: &[Chosen]) -> String {
    match Basis::of(&run[0]) {
        Basis::Confirmed(PairedSpeedUp { pairs, speed_up, interval: [low, high] }) => {
            let is_between = |one: &&Chosen| one.rests_on == Evidence::BetweenConfirmed;
            let between = match run.iter().filter(is_between).count() {
                0 => String::new(),
                count => format!("; {} between confirmed ones", records::counted(count, "size")),
            };
            format!(
                "confirmed by {} of jobs: {speed_up:.2} times as fast, 95 % interval {low:.2} to \
                 {high:.2}{between}",
                records::counted(pairs, "pair")
            )
        }
        Basis::OtherLayout => {
            "not confirmed on this layout: chosen for another one, which is not told apart".into()
        }
        Basis::Unconfirmed(rests_on) => {
            let rests_on = match rests_on {
                Evidence::Predicted => "predicted",
                _ => "measured",
            };
            let speed_ups: Option<Vec<f64>> = run.iter().map(Chosen::speed_up).collect();
            let ends = speed_ups.map(|all| {
                let [least, most] = [f64::min, f64::max].map(|of| all.iter().copied().reduce(of));
                [least, most].map(|end| format!("{:.2}", end.unwrap_or(1.0)))
            });
            let gain = match ends {
                None => String::new(),
                Some([least, most]) if least == most => format!(", {least} times as fast"),
                Some([least, most]) => format!(", {least} to {most} times as fast"),
            };
            format!("{rests_on}, not confirmed{gain}")
        }
    }
}

#[cfg(test)]
mod tests {
    use records::Collective;

    use super::*;

    const AT_FIRST: PairedSpeedUp = PairedSpeedUp { pairs: 4, speed_up: 2.5, interval: [2.1, 3.0] };

    #[test]
    fn neighbours_that_rest_on_the_same_are_one_line_and_the_default_is_none() {
        use Evidence::{BetweenConfirmed, Confirmed, Measured, Predicted};
        let cases = [
            (64, "own:binomial", 2.0, Confirmed),
            (128, "own:binomial", 1.0, BetweenConfirmed),
            (256, "own:binomial", 1.0, Confirmed),
            (512, "default", 4.0, Measured),
            (1024, "own:linear", 2.0, Measured),
            (2048, "own:linear", 2.0, Predicted),
        ];
        let at = |bytes| Point::flat(Collective::Bcast, 8, bytes);
        let chosen = cases.map(|(bytes, method, seconds, rests_on)| {
            let is_confirmed = matches!(rests_on, Confirmed | BetweenConfirmed);
            let times = (seconds, Some(4.0));
            Chosen {
                confirmed: is_confirmed.then_some(AT_FIRST),
                ..Chosen::new(at(bytes), method.parse().unwrap(), times, rests_on)
            }
        });
        let told: Vec<String> = lines(&chosen).iter().map(Comment::to_string).collect();
        assert_eq!(
            told,
            [
                "bcast on 8, 64 B to 256 B: own:binomial (confirmed by 4 pairs of jobs: 2.50 times as fast, \
                 95 % interval 2.10 to 3.00; 1 size between confirmed ones)",
                "bcast on 8, 1 KiB: own:linear (measured, not confirmed, 2.00 times as fast)",
                "bcast on 8, 2 KiB: own:linear (predicted, not confirmed, 2.00 times as fast)",
            ]
        );
    }

    /// As was seen: `measured, 1.00 times as fast` of points that were never timed.
    #[test]
    fn of_a_layout_that_was_not_timed_no_gain_is_told() {
        let point =
            Point { collective: Collective::Bcast, layout: "8x1".parse().unwrap(), bytes: 64 };
        let method: Method = "own:binomial".parse().unwrap();
        let told = Chosen { by_other_layout: true, ..Chosen::measured(point, method, 1.0, 1.0) };
        let told = lines(&[told]);
        let wanted = "bcast on 8, 64 B: own:binomial (not confirmed on this layout: chosen for another one, \
                      which is not told apart)";
        assert_eq!(told[0].to_string(), wanted);
    }
}
