//! The ranks, each run round by round until it has to wait for what is not known yet.

use records::{BufferContent, Collective};

use super::{
    Activity, ActivityKind, Costs, LevelledCosts, Options, Outcome, Ports, SimulationError,
    levels::LEVELS,
    port::later,
    state::{NO_SLOT, RankProgress, Rates, SimulatorMemory},
};
use crate::{Buffer, Call, Entry, Range, Round, Step, entry::known_to, program::Header};

/// Most rounds that a rank runs without a message: a root may have thousands of them.
const ROUNDS_AT_ONCE: u32 = 64;

/// Messages after which a rank lets others go on: more than one, so that who has a parent only
/// serves all its children at once.
const MESSAGES_AT_ONCE: u32 = 2;

/// Chains of comparisons at once: a single one would wait for itself.
const LANES: usize = 4;

/// How far a rank has come.
pub(super) enum StepProgress {
    /// It waits for what is not known yet.
    Waits,
    /// It lets others go on.
    LetsOthers,
    Ended,
}

/// There are more slots or messages than can be numbered.
pub(super) struct NoMemory;

/// The rank under way. What is its own is put back where others see it when it stops.
pub(super) struct Running {
    pub rank: u32,
    pub own: RankProgress,
    /// Messages that it has taken in.
    pub took_in: u32,
    /// Of the round: see [`Round::destinations`].
    pub destinations: u32,
    /// Of its program.
    pub slots: u32,
}

/// What the rounds of one call after the other are made in.
pub(super) struct RoundBuffers {
    round: Round,
    /// What headers hold lies side by side here.
    counts: Vec<u64>,
}

/// Whether the data flow from the leaves to the root.
const fn goes_to_the_root(collective: Collective) -> bool {
    matches!(collective.receives(), BufferContent::OwnAtRoot | BufferContent::AllAtRoot)
}

/// Whether round 0 of a program may bring counts.
const fn has_header(collective: Collective) -> bool {
    collective.has_counts() && collective.is_rooted()
}

/// Whether a rank knows of the call what the caller knows: see [`known_to`].
#[inline]
pub(super) fn knows_all(collective: Collective, call: &Call<'_>, rank: u32) -> bool {
    !has_header(collective) && (!call.in_place || !collective.is_rooted() || rank == call.root)
}

/// The call as a rank knows it in one of its rounds that doesn't know all of it; `counts` are those of all ranks, twice.
#[inline(never)]
pub(super) fn call_in_part<'b>(
    entry: &Entry,
    call: &Call<'b>,
    rank: u32,
    round: u64,
    counts: &'b [u64],
) -> Call<'b> {
    let known = known_to(entry.collective, call, rank);
    if round == 0 {
        return known;
    }
    let Header { first, words } = entry.normal_header(&known, rank);
    Call { header: &counts[first as usize..][..words as usize], ..known }
}

/// `BY_CLOCK`: messages come to the ports in the order of time, see [`clock`](super::clock); else
/// as the data flow has it, see [`flow`](super::flow).
pub(super) struct SimulatedMachine<'a, C, O, const BY_CLOCK: bool> {
    pub entry: &'a Entry,
    pub call: Call<'a>,
    pub options: Options,
    pub memory: &'a mut SimulatorMemory,
    pub costs: &'a C,
    observe: O,
    /// Of the last size that was asked for at each level: most messages have the size of the one
    /// before.
    rates: [Rates; LEVELS],
    /// Of a rendezvous, each of the two ways, by level.
    pub handshake: [f64; LEVELS],
    pub messages: u64,
    pub bytes: u64,
    /// Whether a message was waited for later than one that it held up.
    pub out_of_order: bool,
}

impl<'a, C: LevelledCosts, O: FnMut(Activity), const BY_CLOCK: bool>
    SimulatedMachine<'a, C, O, BY_CLOCK>
{
    pub fn new(
        memory: &'a mut SimulatorMemory,
        entry: &'a Entry,
        call: &Call<'a>,
        costs: &'a C,
        options: Options,
        observe: O,
    ) -> Result<Self, SimulationError> {
        entry.check_everywhere(call)?;
        if entry.uses_shared_memory(call) {
            return Err(SimulationError::SharedMemory);
        }
        let call = entry.normal(call);
        if let Some(ranks) = costs.ranks().filter(|ranks| *ranks != call.ranks) {
            return Err(SimulationError::OtherRanks { ranks, call: call.ranks });
        }
        let frame = match options.ports {
            Ports::Frames(bytes) => bytes,
            Ports::InTurn | Ports::Shared => 0,
        };
        memory.begin(call.ranks, costs.nodes(), frame);
        Ok(SimulatedMachine {
            entry,
            call,
            options,
            memory,
            costs,
            observe,
            rates: std::array::from_fn(|level| Rates::from_costs(costs.of_level(level), 0, 1)),
            handshake: std::array::from_fn(|level| {
                let flight = || costs.of_level(level).flight(0);
                options.handshake.map_or_else(flight, |both| both / 2.0)
            }),
            messages: 0,
            bytes: 0,
            out_of_order: false,
        })
    }

    /// Whether messages at the same time pass a port together.
    #[inline]
    pub fn shares_ports(&self) -> bool {
        self.options.ports != Ports::InTurn && self.options.rendezvous_bytes.is_none()
    }

    pub fn scratch(&self) -> RoundBuffers {
        let counts = [self.call.counts, self.call.counts].concat();
        RoundBuffers { round: Round::of_one_call(), counts }
    }

    /// All ranks, in the order in which they begin: whoever is heard from should have spoken
    /// before.
    pub fn fresh(&self) -> impl Iterator<Item = u32> + use<'a, C, O, BY_CLOCK> {
        let call = self.call;
        let backwards = goes_to_the_root(self.entry.collective);
        (0..call.ranks).map(move |place| match backwards {
            true => call.after(call.root, call.ranks - 1 - place),
            false => call.after(call.root, place),
        })
    }

    /// Lets a rank go on.
    ///
    /// # Errors
    /// More is under way than can be numbered.
    #[inline]
    pub fn go_on(
        &mut self,
        rank: u32,
        scratch: &mut RoundBuffers,
    ) -> Result<StepProgress, SimulationError> {
        let call = self.call;
        let in_part;
        let known = match knows_all(self.entry.collective, &call, rank) {
            true => &call,
            false => {
                let round = self.memory.ranks[rank as usize].own.round;
                in_part = call_in_part(self.entry, &call, rank, round, &scratch.counts);
                &in_part
            }
        };
        let progress = self.advance(rank, known, &mut scratch.round);
        progress.map_err(|NoMemory| SimulationError::Memory { ranks: call.ranks })
    }

    /// What came out when no rank can go on, and so many have not ended.
    ///
    /// # Errors
    /// These wait forever.
    pub fn outcome(&self, unfinished: u32) -> Result<Outcome, SimulationError> {
        if unfinished > 0 {
            let first = self.memory.ranks.iter().position(|rank| rank.own.waits_for != NO_SLOT);
            let first = first.unwrap_or_default() as u32;
            return Err(SimulationError::Deadlock { blocked: unfinished, first });
        }
        let finish: Vec<f64> = self.memory.ranks.iter().map(|rank| rank.own.clock).collect();
        let mut latest = [0.0; LANES];
        for times in finish.chunks(LANES) {
            latest.iter_mut().zip(times).for_each(|(latest, time)| *latest = later(*latest, *time));
        }
        let seconds = latest.into_iter().fold(0.0, later);
        let (messages, bytes) = (self.messages, self.bytes);
        Ok(Outcome { seconds, finish, messages, bytes, busy: None })
    }

    /// Runs a rank until it has to wait, or has done [`ROUNDS_AT_ONCE`] or those in which it took
    /// in [`MESSAGES_AT_ONCE`], or round 0 of those that bring a header.
    ///
    /// That keeps the ranks abreast: if one ran ahead, what it sends would pile up with ranks that
    /// lag behind, and finding messages there is what costs most.
    #[inline]
    fn advance(
        &mut self,
        rank: u32,
        call: &Call<'_>,
        round: &mut Round,
    ) -> Result<StepProgress, NoMemory> {
        let own = self.memory.ranks[rank as usize].own;
        let mut running = Running { rank, own, took_in: 0, destinations: 1, slots: 0 };
        let most = if has_header(self.entry.collective) { 1 } else { ROUNDS_AT_ONCE };
        let mut progress = StepProgress::LetsOthers;
        for _ in 0..most {
            if !self.entry.normal_round(call, rank, running.own.round, round) {
                progress = StepProgress::Ended;
                break;
            }
            if !self.finish_round(&mut running, round)? {
                progress = StepProgress::Waits;
                break;
            }
            running.own.round += 1;
            running.own.place = 0;
            if round.is_last() {
                progress = StepProgress::Ended;
                break;
            }
            if !BY_CLOCK && running.took_in >= MESSAGES_AT_ONCE {
                break;
            }
        }
        self.memory.ranks[rank as usize].own = running.own;
        Ok(progress)
    }

    /// Does what is left of the round; false if the rank has to wait.
    #[inline]
    fn finish_round(&mut self, running: &mut Running, round: &Round) -> Result<bool, NoMemory> {
        running.destinations = round.destinations();
        running.slots = round.slots();
        let steps = round.steps();
        let mut place = running.own.place as usize;
        while let Some(step) = steps.get(place) {
            match *step {
                Step::Send { peer, slot, range } => {
                    let bytes = self.bytes_of(range);
                    let offers = self.options.rendezvous_bytes.is_some_and(|least| bytes >= least);
                    if BY_CLOCK && offers {
                        self.offer(running, peer, slot, bytes)?;
                    } else if BY_CLOCK && self.has_to_let_offers_go(running) {
                        running.own.place = place as u32;
                        return Ok(false);
                    } else {
                        self.send(running, peer, bytes)?;
                    }
                }
                Step::SendReady { peer, range, .. } => {
                    if BY_CLOCK && self.has_to_let_offers_go(running) {
                        running.own.place = place as u32;
                        return Ok(false);
                    }
                    self.send(running, peer, self.bytes_of(range))?;
                }
                Step::Receive { peer, slot, .. } => {
                    let at_once = steps.get(place + 1) == Some(&Step::Wait { slot });
                    place += usize::from(self.receive(running, peer, slot, at_once)?);
                }
                Step::Wait { slot } => {
                    if !self.wait(running, slot) {
                        running.own.place = place as u32;
                        return Ok(false);
                    }
                }
                Step::Combine { into, .. } => {
                    let bytes = self.bytes_of(into);
                    let seconds = self.costs.of_level(0).combine(bytes);
                    self.busy_from(running, 0.0, seconds, ActivityKind::Combine, bytes);
                }
                Step::Copy { into, .. } => {
                    let bytes = self.bytes_of(into);
                    let seconds = self.costs.of_level(0).copy(bytes);
                    self.busy_from(running, 0.0, seconds, ActivityKind::Copy, bytes);
                }
                // Calls that share memory are refused at the beginning.
                Step::Signal { .. }
                | Step::Await { .. }
                | Step::AwaitAll { .. }
                | Step::AwaitFinished { .. }
                | Step::Finish { .. } => {}
            }
            place += 1;
        }
        Ok(true)
    }

    /// From that time on, or when the processor is free, if that is later.
    #[inline]
    pub fn busy_from(
        &mut self,
        running: &mut Running,
        from: f64,
        seconds: f64,
        kind: ActivityKind,
        bytes: u64,
    ) {
        let (rank, waits) = (running.rank, running.own.clock);
        let begin = later(waits, from);
        let end = begin + seconds;
        running.own.clock = end;
        self.observe_wait(rank, waits, begin);
        (self.observe)(Activity { rank, kind, begin, end, bytes });
    }

    #[inline]
    pub fn observe_wait(&mut self, rank: u32, begin: f64, end: f64) {
        if end > begin {
            (self.observe)(Activity { rank, kind: ActivityKind::Wait, begin, end, bytes: 0 });
        }
    }

    /// The costs of receiving so many bytes at a level; the gap is of no concern.
    #[inline]
    pub fn rates(&mut self, level: usize, bytes: u64) -> &Rates {
        let rates = &mut self.rates[level];
        if rates.bytes != bytes {
            *rates = Rates::from_costs(self.costs.of_level(level), bytes, rates.destinations);
        }
        rates
    }

    /// The costs of sending so many bytes to one of so many destinations at a level.
    #[inline]
    pub fn rates_to(&mut self, level: usize, bytes: u64, destinations: u32) -> &Rates {
        let rates = &mut self.rates[level];
        if rates.bytes != bytes {
            *rates = Rates::from_costs(self.costs.of_level(level), bytes, destinations);
        } else if rates.destinations != destinations {
            rates.gap = self.costs.of_level(level).gap(bytes, destinations);
            rates.destinations = destinations;
        }
        rates
    }

    /// Where a slot of the running rank lies; it gets them all when it needs the first.
    #[inline]
    pub fn slot(&mut self, running: &mut Running, slot: u32) -> Result<usize, NoMemory> {
        if running.own.first_slot == NO_SLOT {
            running.own.first_slot = self.memory.give_slots(running.slots).ok_or(NoMemory)?;
        }
        Ok(running.own.first_slot as usize + slot as usize)
    }

    #[inline]
    fn bytes_of(&self, range: Range) -> u64 {
        match range.buffer {
            Buffer::Counts | Buffer::Header => range.count * size_of::<u64>() as u64,
            _ => range.count * self.options.element_bytes,
        }
    }
}
