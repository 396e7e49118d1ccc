//! Flags that several subcommands share, and the values in them.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use clap::builder::{OsStringValueParser, TypedValueParser};
use records::Algorithm;

pub use site::options::{RunOptions, SiteOptions};
use stages::options::each;
pub use stages::options::{
    GridOptions, List, ListedOrBestSegments, ListedSegments, MethodOptions, ModelOptions,
    ParameterSet, RootOption, collectives, kinds, layouts, measured_procs, procs, roots, sizes,
    timing_scheme,
};

pub fn algorithms(text: &str) -> Result<List<Algorithm>, String> {
    each(text)
}

/// Takes a value in which a file is named: that need not be UTF-8.
pub fn with_a_path<T: Clone + Send + Sync + 'static>(
    parse: fn(OsString) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(parse)
}

/// A file to draw into. Endings that would not be written are refused before any work.
pub fn figure() -> impl TypedValueParser<Value = PathBuf> {
    with_a_path(|name| {
        let path = PathBuf::from(name);
        match path.extension().and_then(OsStr::to_str) {
            Some("svg" | "png") => Ok(path),
            _ => Err("expected a name that ends with .svg or .png".into()),
        }
    })
}
