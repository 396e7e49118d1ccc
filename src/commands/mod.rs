//! The subcommands, one file each.

pub mod calibrate;
pub mod clocks;
pub mod decide;
pub mod draw;
pub mod export;
pub mod guidelines;
pub mod predict;
pub mod simulate;
pub mod testbed;
pub mod tune;
pub mod verify;

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use records::{FileError, platform::Platform};

/// The platform that a record's header states.
fn platform(header: &BTreeMap<String, String>, path: &Path) -> Result<Platform> {
    let fault = |problem: String| FileError::new(path, problem).in_field("#@platform");
    let text = header.get("platform").ok_or_else(|| fault("is missing".into()))?;
    Ok(serde_json::from_str(text).map_err(|error| fault(error.to_string()))?)
}
