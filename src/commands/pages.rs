//! `colibri pages`: writes the man pages and completions that `make install` installs; hidden from
//! users.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command, ValueEnum as _};
use clap_complete::Shell;

/// Writes the man pages and the completions of shells into a directory
#[derive(Debug, Args)]
pub struct PagesCommand {
    /// The directory to make
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl PagesCommand {
    /// Runs the subcommand; `command` is the whole command line's definition.
    ///
    /// # Errors
    /// The system refuses.
    pub fn run(self, mut command: Command) -> Result<()> {
        let make = |name: &str| {
            let path = self.directory.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
            Ok::<_, anyhow::Error>(path)
        };
        let (manual, completions) = (make("man1")?, make("completions")?);
        // Each subcommand's page is named colibri-SUBCOMMAND.
        clap_mangen::generate_to(command.clone(), &manual)
            .with_context(|| format!("cannot write into {}", manual.display()))?;
        for &shell in Shell::value_variants() {
            clap_complete::generate_to(shell, &mut command, "colibri", &completions)
                .with_context(|| format!("cannot write into {}", completions.display()))?;
        }
        Ok(())
    }
}
