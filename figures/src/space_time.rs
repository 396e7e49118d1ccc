//! A schedule in time: what every rank does, and the messages between them.

use records::quantity::format_seconds;
use schedules::simulator::{Activity, ActivityKind};

use crate::{
    Figure, FigureError,
    page::Heading,
    space_time_page::{ActivityBar, Arrow, ArrowKind, BarKind, SpaceTime},
};

/// Most ranks, and messages and flags together, in one picture that a reader can still follow.
pub const MAX_RANKS: u32 = 64;
/// See [`MAX_RANKS`].
pub const MAX_MESSAGES: usize = 1000;

/// A space-time diagram: ranks downwards, time from left to right, bars for what a rank does, and
/// an arrow for each message, from where it leaves its sender's processor to where its receiver
/// takes it in, and for each flag, from where it is raised to where it is seen. A rank's lane ends where the rank is done.
///
/// `activities` are what the simulator shows of one call with `ranks` ranks; `lines` stand below
/// the title.
///
/// # Errors
/// More than [`MAX_RANKS`] ranks or [`MAX_MESSAGES`] messages and flags, an activity of a rank that isn't
/// there, times that aren't numbers from 0 on, or no time passes.
pub fn space_time(
    title: &str,
    lines: &[String],
    ranks: u32,
    activities: &[Activity],
) -> Result<Figure, FigureError> {
    if ranks > MAX_RANKS {
        let [count, limit] = [ranks, MAX_RANKS].map(|ranks| ranks as usize);
        return Err(FigureError::TooMuch { what: "ranks", count, limit });
    }
    for activity in activities {
        check(activity, ranks)?;
    }
    let mut arrows = Vec::new();
    let mut bars = Vec::new();
    let mut done = vec![0.0_f64; ranks as usize];
    for Activity { rank, kind, begin, end, .. } in activities.iter().copied() {
        let own = &mut done[rank as usize];
        *own = own.max(end);
        if let Some(what) = BarKind::from_activity(kind).filter(|_| end > begin) {
            bars.push(ActivityBar { rank, begin, end, what });
        }
        let (what, from, left) = match kind {
            ActivityKind::Receive { from, left } => (ArrowKind::Message, from, left),
            ActivityKind::Flag { of, raised } => (ArrowKind::Flag, of, raised),
            _ => continue,
        };
        arrows.push(Arrow { what, from, left, to: rank, taken: begin });
    }
    let number = |what| arrows.iter().filter(|arrow| arrow.what == what).count();
    let [messages, flags] = [ArrowKind::Message, ArrowKind::Flag].map(number);
    if messages + flags > MAX_MESSAGES {
        let what = if flags > 0 { "flags and messages" } else { "messages" };
        let (count, limit) = (messages + flags, MAX_MESSAGES);
        return Err(FigureError::TooMuch { what, count, limit });
    }
    let seconds = done.iter().copied().fold(0.0, f64::max);
    if seconds <= 0.0 {
        return Err(FigureError::NothingToDraw("no time passes in this schedule".into()));
    }
    let messages = match (messages, flags) {
        (0, 1..) => format!("{} awaited", records::counted(flags, "flag")),
        (_, 0) => records::counted(messages, "message"),
        _ => format!(
            "{}, {} awaited",
            records::counted(messages, "message"),
            records::counted(flags, "flag")
        ),
    };
    let mut lines = lines.to_vec();
    lines.push(format!(
        "{messages}; the last rank is done after {}; a lane ends where its rank is done",
        format_seconds(seconds)
    ));
    let heading = Heading { title: title.into(), lines };
    Figure::of_space_time(SpaceTime::new(heading, bars, arrows, done, seconds))
}

fn check(activity: &Activity, ranks: u32) -> Result<(), FigureError> {
    let (other, left) = match activity.kind {
        ActivityKind::Send { to } => (to, 0.0),
        ActivityKind::Receive { from, left } => (from, left),
        ActivityKind::Flag { of, raised } => (of, raised),
        ActivityKind::Wait | ActivityKind::Combine | ActivityKind::Copy => (activity.rank, 0.0),
    };
    if activity.rank.max(other) >= ranks {
        let rank = activity.rank.max(other);
        return Err(FigureError::Impossible(format!("rank {rank} acts among {ranks} ranks")));
    }
    let Activity { begin, end, .. } = *activity;
    match [begin, end, left].iter().all(|time| time.is_finite() && *time >= 0.0) {
        true => Ok(()),
        false => Err(FigureError::Impossible(format!(
            "rank {} acts from {begin} to {end} s, on a message or a flag of {left} s",
            activity.rank
        ))),
    }
}
