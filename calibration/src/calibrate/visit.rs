//! Repetitions of a cell at one go.

/// Repetitions of a cell at one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisitTimes {
    /// The first ones, which find connections, caches and the other rank as what came before left
    /// them.
    pub unjudged: u32,
    /// Those that count.
    pub judged: u32,
}

impl VisitTimes {
    /// About what a visit takes: telling the other rank costs time too.
    const SECONDS: f64 = 2e-3;
    /// Most judged repetitions in one visit: they share one state of the machine.
    const MOST: u32 = 8;
    /// What takes longer does not feel in which state the visit found things.
    const LONG_SECONDS: f64 = 5e-3;

    /// Whether one repetition takes so long that it does not feel in which state the visit found things.
    pub fn is_long(seconds: f64) -> bool {
        seconds >= Self::LONG_SECONDS
    }

    /// To a cell of which one repetition takes so long.
    pub fn for_call_time(seconds: f64) -> Self {
        let fitting = (Self::SECONDS / seconds.max(1e-9)) as u32;
        VisitTimes {
            unjudged: u32::from(!Self::is_long(seconds)),
            judged: fitting.clamp(1, Self::MOST),
        }
    }

    /// All of them.
    pub fn repetitions(self) -> u32 {
        self.unjudged + self.judged
    }
}
