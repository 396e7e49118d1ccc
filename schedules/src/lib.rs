//! Every collective algorithm, written once as a small program per rank.
//!
//! A [`Step`] posts a send or a receive of a range of *elements*, waits on its slot, combines or
//! copies; nothing here knows MPI. The steps come in *rounds*, and a round is a pure function of
//! the [`Call`], the rank and the round's number ([`Entry::round`]). So whoever follows a program
//! keeps two numbers per rank (round, place in the round) and one scratch [`Round`]: a million
//! ranks times a thousand segments is never held in memory, and a program can be stopped at any
//! wait and taken up again.
//!
//! - [`topology`]: the virtual trees and the ring;
//! - [`algorithms`]: the programs, one folder per collective ([`ENTRIES`]); `shared` has those of memory that ranks
//!   share, whose steps set and await flags, `node_aware` those that look at nodes; `registry` finds any of them;
//! - [`checker`]: executes a program on symbols and proves it right for one call;
//! - [`simulator`]: executes it in virtual time under `LogGP` or `PLogP`.
//!
//! ```
//! use colibri_schedules::{Call, Round, Step, find};
//! use records::{Algorithm, Collective};
//!
//! let pipeline = find(Collective::Bcast, Algorithm::Pipeline).expect("registered");
//! let call = Call { segment: 8, ..Call::new(4, 100) };
//! pipeline.check(&call)?;
//! let mut round = Round::default();
//! let mut sends = 0;
//! for index in 0..pipeline.needs(&call, 0).rounds {
//!     pipeline.round(&call, 0, index, &mut round);
//!     sends += round.steps().iter().filter(|step| matches!(step, Step::Send { .. })).count();
//! }
//! assert_eq!(sends, 13); // the root hands 13 segments to the next of the chain
//! # Ok::<(), colibri_schedules::CallError>(())
//! ```

#![forbid(unsafe_code)]

pub mod algorithms;
mod arrangement;
mod bound;
mod call;
pub mod checker;
mod entry;
mod estimate;
mod node_aware;
mod nodes;
mod program;
mod range;
mod registry;
pub mod shared;
pub mod simulator;
mod step;
pub mod topology;

pub use algorithms::{ENTRIES, VARIANTS};
pub use call::{Call, ElementSpan};
pub(crate) use entry::NodeChecks;
pub use entry::{CallError, Entry, Requirements};
pub use estimate::Length;
pub use node_aware::{NODE_AWARE, find_node_aware, find_part, find_part_inside, parts};
pub use nodes::NodesOfRanks;
pub use program::{ALL_SHARED, Header, Needs, Program, Sequence};
pub use range::{Buffer, Flag, Range};
pub use registry::{find, find_method, find_named, find_variant, of_collective};
pub use shared::{SHARED, find_shared, shared_of_collective, why_not_modelled};
pub use step::{OperandOrder, Round, Step};
