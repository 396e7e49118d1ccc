//! Figures asked for by a flag.

use std::path::Path;

use anyhow::Result;
use figures::{Figure, FigureError};

use site::error::WrongUse;

/// Writes a figure that could be drawn.
///
/// # Errors
/// It could not, or the file cannot be written.
pub fn write(figure: Result<Figure, FigureError>, path: &Path) -> Result<()> {
    figure.and_then(|figure| figures::save_as(&figure, path)).map_err(answer)
}

/// What the figures refuse was asked for wrongly; the rest failed.
pub fn answer(error: FigureError) -> anyhow::Error {
    match error {
        FigureError::TooMuch { .. }
        | FigureError::Impossible(_)
        | FigureError::NothingToDraw(_) => WrongUse(error.to_string()).into(),
        FigureError::File(_) | FigureError::Drawing(_) => error.into(),
    }
}
