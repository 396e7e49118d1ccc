//! Which of the methods that files and commands name are carried out here, and by what.

use std::fmt;

use records::Collective;

use crate::{
    Error, Result, ScheduledMethod,
    mockups::{self, Limits, Mockup},
};

/// A method of ours, as something that can be run.
#[derive(Debug, Clone, Copy)]
pub enum Runnable {
    /// An algorithm with its parameters.
    Algorithm(ScheduledMethod),
    /// A composition of the library's collectives.
    Mockup(&'static Mockup),
}

impl Runnable {
    /// What carries out a method; nothing where it is the library's or a plug-in's affair.
    ///
    /// # Errors
    /// There is no such algorithm or mock-up of this collective; says what there is.
    pub fn new(collective: Collective, method: &records::Method) -> Result<Option<Self>> {
        match method {
            records::Method::Default
            | records::Method::Native(_)
            | records::Method::Plugin(_)
            | records::Method::Other(_) => Ok(None),
            records::Method::Own(method) => ScheduledMethod::new(collective, method)
                .map(|method| Some(Runnable::Algorithm(method))),
            records::Method::Mockup(name) => {
                let mockup = mockups::find(name).map_err(Error::Refused)?;
                match mockup.collective == collective {
                    true => Ok(Some(Runnable::Mockup(mockup))),
                    false => {
                        let other = mockup.collective;
                        let problem = format!("{mockup} is a mock-up of {other}, not {collective}");
                        Err(Error::Refused(problem))
                    }
                }
            }
        }
    }

    /// The method as files and commands name it.
    pub fn method(&self) -> records::Method {
        match self {
            Runnable::Algorithm(scheduled) => records::Method::Own(scheduled.method),
            Runnable::Mockup(mockup) => records::Method::Mockup(mockup.name.to_owned()),
        }
    }

    /// Whether it can carry out calls of `bytes`, as [`Collective::message_size`] counts them, on so
    /// many processes, with this memory for mock-ups.
    ///
    /// # Errors
    /// It can't; says why.
    pub fn check(&self, procs: u32, bytes: u64, limits: Limits) -> Result<()> {
        match self {
            Runnable::Algorithm(method) => method.check_ranks(procs),
            Runnable::Mockup(mockup) => limits.allow(mockup, procs, bytes),
        }
    }
}

/// What is recorded as having run.
impl fmt::Display for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Runnable::Algorithm(method) => method.fmt(f),
            Runnable::Mockup(mockup) => mockup.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_here_is_told_from_what_is_not() {
        let runnable = |collective, method: &str| {
            Runnable::new(collective, &method.parse().unwrap())
                .map(|found| {
                    found.map(|runnable| {
                        assert_eq!(runnable.to_string(), runnable.method().to_string());
                        runnable.to_string()
                    })
                })
                .map_err(|error| error.to_string())
        };
        for method in ["default", "native:openmpi:binomial", "plugin:libx.so:bcast"] {
            assert_eq!(runnable(Collective::Bcast, method), Ok(None), "{method}");
        }
        for method in ["own:linear", "mockup:bcast_as_allgatherv"] {
            assert_eq!(runnable(Collective::Bcast, method), Ok(Some(method.to_owned())));
        }
        let error = runnable(Collective::Gather, "mockup:bcast_as_allgatherv").unwrap_err();
        assert!(error.contains("mock-up of bcast, not gather"), "{error}");
        let error = runnable(Collective::Bcast, "mockup:bcast_as_allgatherw").unwrap_err();
        assert!(error.contains("bcast_as_allgatherv"), "{error}");
        let error = runnable(Collective::Bcast, "own:rabenseifner").unwrap_err();
        assert!(error.contains("known: binary"), "{error}");
    }
}
