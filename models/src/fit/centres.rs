//! Centres of what several ranks were timed at.

use std::collections::BTreeMap;

use records::{calibration::Operation, group_observation::GroupKind};

/// Kind, operation, processes, bytes, messages.
pub(super) type GroupKey = (GroupKind, Option<Operation>, u32, u64, u32);

/// The centres of one drawing.
pub(super) type GroupCentres = BTreeMap<GroupKey, f64>;
