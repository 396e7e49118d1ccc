//! Figures in a run's directory.

use anyhow::Result;

use site::run_directory::RunDirectory;

/// Writes figures into the run's directory and names the files.
pub fn save(run: &RunDirectory, drawn: &[(String, figures::Figure)]) -> Result<Vec<String>> {
    let Some(directory) = run.figures()? else { return Ok(Vec::new()) };
    let mut written = Vec::new();
    for (name, figure) in drawn {
        let paths = figures::save(figure, &directory.join(name))?;
        written.extend(paths.iter().map(|path| path.display().to_string()));
    }
    Ok(written)
}
