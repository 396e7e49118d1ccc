//! The programs that a testbed is built with, and running them.

use std::{
    env,
    ffi::OsStr,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::TestbedError;

/// Where `ip` finds its namespaces.
pub(crate) const NAMESPACES: &str = "/run/netns";

pub(crate) fn require_root() -> Result<(), TestbedError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(TestbedError::NotRoot),
    }
}

/// The programs, found once.
pub(crate) struct Tools {
    pub ip: PathBuf,
    pub tc: PathBuf,
    pub nsenter: PathBuf,
    pub unshare: PathBuf,
}

impl Tools {
    pub fn find() -> Result<Tools, TestbedError> {
        Ok(Tools {
            ip: find("ip", "iproute2")?,
            tc: find("tc", "iproute2")?,
            nsenter: find("nsenter", "util-linux")?,
            unshare: find("unshare", "util-linux")?,
        })
    }
}

/// On PATH, or where `su` without `-` leaves it out.
fn find(program: &'static str, package: &'static str) -> Result<PathBuf, TestbedError> {
    on_path(program)
        .or_else(|| {
            ["/usr/sbin", "/sbin"]
                .map(|d| Path::new(d).join(program))
                .into_iter()
                .find(|p| p.is_file())
        })
        .ok_or(TestbedError::NoProgram { program, package })
}

pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    in_folders(&env::var_os("PATH")?, &[program]).into_iter().next()
}

/// The programs of these names, folder by folder as PATH names them: what a module has put in front comes
/// before what the system has, under whatever name.
pub(crate) fn in_folders(path: &OsStr, names: &[&str]) -> Vec<PathBuf> {
    let folders = env::split_paths(path);
    let programs = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    programs.filter(|program| program.is_file()).collect()
}

/// A step in the making: what it does, and what it may be that it cannot.
pub(crate) struct SystemStep<'a> {
    pub doing: &'a str,
    pub needs: &'a str,
}

impl SystemStep<'_> {
    /// Runs a program to its end.
    pub fn run<I, A>(&self, program: &Path, arguments: I) -> Result<(), TestbedError>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        self.run_with(program, arguments, "")
    }

    /// Runs a program to its end, with a text as its input.
    pub fn run_with<I, A>(
        &self,
        program: &Path,
        arguments: I,
        input: &str,
    ) -> Result<(), TestbedError>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.spawn().and_then(|mut child| {
            if let Some(mut pipe) = child.stdin.take() {
                // One that ends before it has read all says why.
                let _ = pipe.write_all(input.as_bytes());
            }
            child.wait_with_output()
        });
        let output = output.map_err(|error| self.failed(&could_not_run(program, &error)))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().replace('\n', "; ");
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        Err(self.failed(&match said.is_empty() {
            true => format!("{name} ended with {}", output.status),
            false => format!("{name}: {said}"),
        }))
    }

    fn failed(&self, problem: &str) -> TestbedError {
        let hint = match self.needs {
            "" => String::new(),
            needs => format!(" (it needs {needs})"),
        };
        TestbedError::Step { doing: self.doing.into(), problem: problem.into(), hint }
    }
}

fn could_not_run(program: &Path, error: &io::Error) -> String {
    format!("{} does not start: {error}", program.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_tells_what_the_program_said_and_what_it_needs() {
        let step = SystemStep { doing: "make a bridge", needs: "a kernel with CONFIG_BRIDGE" };
        let shell = Path::new("/bin/sh");
        let error = step.run(shell, ["-c", "echo no >&2; echo way >&2; exit 2"]).unwrap_err();
        let wanted = "cannot make a bridge: sh: no; way (it needs a kernel with CONFIG_BRIDGE)";
        assert_eq!(error.to_string(), wanted);
        let error = step.run(shell, ["-c", "exit 3"]).unwrap_err().to_string();
        assert!(error.contains("sh ended with exit status: 3"), "{error}");
        let error = step.run(Path::new("/nonexistent/ip"), ["a"]).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/ip does not start"), "{error}");
        assert!(step.run(shell, ["-c", "true"]).is_ok());
    }
}
