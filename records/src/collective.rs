use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Layout, names::unknown_as, quantity::format_bytes};

macro_rules! collectives {
    ($($variant:ident: $columns:expr,)*) => {
        /// An MPI collective operation.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "the names are MPI's own")]
        pub enum Collective { $($variant,)* }

        impl Collective {
            /// All of them, by name.
            pub const ALL: [Collective; [$(Collective::$variant),*].len()] =
                [$(Collective::$variant),*];

            /// A row of each, in the order of [`Collective::ALL`].
            const ROWS: &[Columns; Collective::ALL.len()] = {
                use BufferContent::{All, AllAtRoot, Nothing, Own, OwnAtRoot};
                &[$($columns),*]
            };
        }
    };
}

// The name, what the message size is, what is sent, what is received.
collectives! {
    Allgather: Columns::new("allgather", MessageSize::Block, Own, All),
    Allgatherv: Columns::new("allgatherv", MessageSize::MeanBlock, Own, All)
        .v_form_of(Collective::Allgather),
    Allreduce: Columns::new("allreduce", MessageSize::Vector, Own, Own).combining(),
    Alltoall: Columns::new("alltoall", MessageSize::Block, All, All),
    Alltoallv: Columns::new("alltoallv", MessageSize::MeanBlock, All, All)
        .v_form_of(Collective::Alltoall),
    Barrier: Columns::new("barrier", MessageSize::Nothing, Nothing, Nothing),
    Bcast: Columns::new("bcast", MessageSize::Vector, Nothing, Own).rooted(),
    Exscan: Columns::new("exscan", MessageSize::Vector, Own, Own).combining(),
    Gather: Columns::new("gather", MessageSize::Block, Own, AllAtRoot).rooted(),
    Gatherv: Columns::new("gatherv", MessageSize::MeanBlock, Own, AllAtRoot)
        .rooted()
        .v_form_of(Collective::Gather),
    Reduce: Columns::new("reduce", MessageSize::Vector, Own, OwnAtRoot).rooted().combining(),
    ReduceScatter: Columns::new("reduce_scatter", MessageSize::MeanBlock, All, Own)
        .combining()
        .v_form_of(Collective::ReduceScatterBlock),
    ReduceScatterBlock: Columns::new("reduce_scatter_block", MessageSize::Block, All, Own).combining(),
    Scan: Columns::new("scan", MessageSize::Vector, Own, Own).combining(),
    Scatter: Columns::new("scatter", MessageSize::Block, AllAtRoot, Own).rooted(),
    Scatterv: Columns::new("scatterv", MessageSize::MeanBlock, AllAtRoot, Own)
        .rooted()
        .v_form_of(Collective::Scatter),
}

impl Collective {
    // These are asked in every call under the preload library, of a collective that is known there when it is compiled.
    #[inline(always)]
    const fn columns(self) -> &'static Columns {
        &Self::ROWS[self as usize]
    }

    /// MPI's name in lower case, without the prefix.
    pub const fn name(self) -> &'static str {
        self.columns().name
    }

    /// What "message size" means for this collective, in every file and flag of Colibri.
    ///
    /// Libraries and tools differ (per rank, per block, total); exporters convert.
    pub const fn message_size(self) -> &'static str {
        match self.columns().size {
            MessageSize::Nothing => "0",
            MessageSize::Vector => "count x type size",
            MessageSize::Block => "the block between one pair of ranks",
            MessageSize::MeanBlock => "the mean block between one pair of ranks",
        }
    }

    /// The size in bytes of the elements with which Colibri measures a message of `bytes`:
    /// libraries fall back by the number of elements. Reductions are of doubles where these fit.
    pub const fn element_bytes(self, bytes: u64) -> u64 {
        if self.combines() && bytes >= 8 && bytes.is_multiple_of(8) { 8 } else { 1 }
    }

    /// Bytes of all the data of a call of `bytes`, as performance guidelines compare calls: a vector, or
    /// the blocks of all ranks.
    pub const fn data_bytes(self, bytes: u64, procs: u32) -> u64 {
        match self.columns().size {
            MessageSize::Nothing => 0,
            MessageSize::Vector => bytes,
            MessageSize::Block | MessageSize::MeanBlock => bytes.saturating_mul(procs as u64),
        }
    }

    /// The message size at which a call carries so much data, or a little more where it must be padded.
    pub const fn bytes_of_data(self, data: u64, procs: u32) -> u64 {
        match self.columns().size {
            MessageSize::Nothing => 0,
            MessageSize::Vector => data,
            MessageSize::Block | MessageSize::MeanBlock => {
                data.div_ceil(if procs == 0 { 1 } else { procs as u64 })
            }
        }
    }

    /// What the send buffer holds; a broadcast has none, nor has what is sent in place.
    #[inline(always)]
    pub const fn sends(self) -> BufferContent {
        self.columns().sends
    }

    /// What the receive buffer holds afterwards.
    #[inline(always)]
    pub const fn receives(self) -> BufferContent {
        self.columns().receives
    }

    /// Whether what is sent is combined by an operation.
    #[inline(always)]
    pub const fn combines(self) -> bool {
        self.columns().combines
    }

    /// Whether the call names a root.
    #[inline(always)]
    pub const fn is_rooted(self) -> bool {
        self.columns().rooted
    }

    /// Whether each rank's block has a count of its own.
    #[inline(always)]
    pub const fn has_counts(self) -> bool {
        matches!(self.columns().size, MessageSize::MeanBlock)
    }

    /// Whether each rank knows the counts of all ranks, where each has one of its own: not where the root alone
    /// knows them, nor where each rank has others for what it sends.
    #[inline(always)]
    pub const fn all_know_counts(self) -> bool {
        let is_of_pairs =
            matches!((self.sends(), self.receives()), (BufferContent::All, BufferContent::All));
        self.has_counts() && !self.is_rooted() && !is_of_pairs
    }

    /// The collective with blocks that are all alike, if this is the same with a count for each.
    pub const fn v_form_of(self) -> Option<Collective> {
        self.columns().v_form_of
    }
}

/// What a buffer of one rank holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferContent {
    /// Nothing: there is no such buffer, or nobody looks at it.
    Nothing,
    /// One vector or block, on every rank.
    Own,
    /// One vector, on the root alone.
    OwnAtRoot,
    /// The blocks of all ranks, on every rank.
    All,
    /// The blocks of all ranks, on the root alone.
    AllAtRoot,
}

impl BufferContent {
    /// Its bytes for messages of `bytes` on so many processes, on the rank that holds most.
    pub const fn bytes(self, bytes: u64, procs: u32) -> u64 {
        match self {
            BufferContent::Nothing => 0,
            BufferContent::Own | BufferContent::OwnAtRoot => bytes,
            BufferContent::All | BufferContent::AllAtRoot => bytes.saturating_mul(procs as u64),
        }
    }
}

/// What the message size is.
#[derive(Debug, Clone, Copy)]
enum MessageSize {
    Nothing,
    Vector,
    Block,
    MeanBlock,
}

/// What is known of a collective.
struct Columns {
    name: &'static str,
    size: MessageSize,
    sends: BufferContent,
    receives: BufferContent,
    rooted: bool,
    combines: bool,
    v_form_of: Option<Collective>,
}

impl Columns {
    const fn new(
        name: &'static str,
        size: MessageSize,
        sends: BufferContent,
        receives: BufferContent,
    ) -> Self {
        Columns { name, size, sends, receives, rooted: false, combines: false, v_form_of: None }
    }

    const fn rooted(self) -> Self {
        Columns { rooted: true, ..self }
    }

    const fn combining(self) -> Self {
        Columns { combines: true, ..self }
    }

    const fn v_form_of(self, blocks_alike: Collective) -> Self {
        Columns { v_form_of: Some(blocks_alike), ..self }
    }
}

/// One kind of call: what a decision function is asked about, and what is measured. In files its fields stand
/// among those of what is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    pub collective: Collective,
    /// The communicator's ranks and nodes; `procs` in files, where a number is one rank per node.
    #[serde(rename = "procs")]
    pub layout: Layout,
    /// Message size; see [`Collective::message_size`]. 0 for a barrier.
    pub bytes: u64,
}

impl Point {
    pub const fn new(collective: Collective, layout: Layout, bytes: u64) -> Self {
        Point { collective, layout, bytes }
    }

    /// Where each node holds one rank.
    pub const fn flat(collective: Collective, procs: u32, bytes: u64) -> Self {
        Point { collective, layout: Layout::flat(procs), bytes }
    }

    pub const fn procs(self) -> u32 {
        self.layout.procs()
    }

    /// A segment size as it is here: one of the whole message is none (0).
    pub const fn segment(self, segment_bytes: u64) -> u64 {
        if segment_bytes < self.bytes { segment_bytes } else { 0 }
    }

    /// What its sizes are sizes of: one line of a table, one curve of a figure.
    pub const fn line(self) -> (Collective, Layout) {
        (self.collective, self.layout)
    }
}

/// In words: `bcast of 64 KiB on 8 processes`.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { collective, layout, bytes } = self;
        write!(f, "{collective} of {} on {}", format_bytes(*bytes), layout.in_words())
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Collective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        Self::ALL
            .into_iter()
            .find(|collective| collective.name() == text)
            .ok_or_else(|| unknown_as("collective", (text, &meant(text)), &names))
    }
}

/// The collective whose MPI function is named, as `MPI_Bcast`, or whose name is written in another way, as
/// `ReduceScatter` or `all-gather`; else what was given, in small letters.
fn meant(text: &str) -> String {
    let small = text.to_ascii_lowercase();
    let plain = |name: &str| name.replace(['_', '-', ' '], "");
    let function = small.strip_prefix('p').unwrap_or(&small);
    let name = plain(function.strip_prefix("mpi_").unwrap_or(&small));
    let same = Collective::ALL.map(Collective::name).into_iter().find(|known| plain(known) == name);
    match (same, name.as_str()) {
        (Some(known), _) => known.into(),
        (None, "broadcast") => Collective::Bcast.name().into(),
        (None, _) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_match_the_files() {
        for collective in Collective::ALL {
            assert_eq!(collective.name().parse(), Ok(collective));
            let json = serde_json::to_string(&collective).unwrap();
            assert_eq!(json, format!("\"{}\"", collective.name()));
        }
    }

    #[test]
    fn other_spellings_are_told_the_name() {
        let told = |text: &str| text.parse::<Collective>().unwrap_err();
        for collective in Collective::ALL {
            let name = collective.name();
            let hint = format!("; did you mean '{name}'?");
            let function = format!("MPI_{}{}", name[..1].to_uppercase(), &name[1..]);
            let squeezed = name.replace('_', "");
            for text in [&function, &format!("P{function}"), &name.to_uppercase(), &function[4..]] {
                if text != name {
                    assert!(told(text).contains(&hint), "{text}: {}", told(text));
                }
            }
            if squeezed != name {
                assert!(told(&squeezed).contains(&hint), "{squeezed}: {}", told(&squeezed));
            }
        }
        for (text, name) in [
            ("broadcast", "bcast"),
            ("Broadcast", "bcast"),
            ("all-to-all", "alltoall"),
            ("bcats", "bcast"),
        ] {
            let wanted = format!("unknown collective '{text}'; did you mean '{name}'?");
            assert!(told(text).starts_with(&wanted), "{}", told(text));
        }
    }

    /// What is on the root alone needs one; a v-form is what it is of but for the counts.
    #[test]
    fn the_columns_of_the_table_agree() {
        for collective in Collective::ALL {
            let held = [collective.sends(), collective.receives()];
            let at_root = held
                .iter()
                .any(|held| matches!(held, BufferContent::OwnAtRoot | BufferContent::AllAtRoot));
            assert!(collective.is_rooted() || !at_root, "{collective}");
            assert_eq!(collective.v_form_of().is_some(), collective.has_counts(), "{collective}");
            if let Some(plain) = collective.v_form_of() {
                assert_eq!([plain.sends(), plain.receives()], held, "{collective}");
                assert_eq!(plain.is_rooted(), collective.is_rooted(), "{collective}");
                assert_eq!(plain.combines(), collective.combines(), "{collective}");
            }
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = "bcats".parse::<Collective>().unwrap_err();
        assert!(error.contains("did you mean 'bcast'?"), "{error}");
    }
}
