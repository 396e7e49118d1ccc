//! The titles of the Intel MPI Benchmarks, which differ from version to version.

/// `(2021, 7)`; version 4.1 is `(4, 1)`.
pub(super) type ImbVersion = (u32, u32);

/// What a title tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ImbTitle {
    pub(super) version: Option<ImbVersion>,
    /// Whether the part is the one that is read, MPI-1.
    pub(super) is_read: bool,
    /// Whether buffers are in the memory of GPUs.
    pub(super) on_gpus: bool,
}

impl ImbTitle {
    /// `Intel(R) MPI Benchmarks 2021.7, MPI-1 part`; versions differ in their blanks, and up to 4.0 are called
    /// `Intel (R) MPI Benchmark Suite V4.0`.
    pub(super) fn of(comment: &str) -> Option<Self> {
        let plain: String = comment.chars().filter(|sign| !sign.is_whitespace()).collect();
        let rest = plain.strip_prefix("Intel(R)MPIBenchmark")?;
        let rest = rest.strip_prefix("SuiteV").or_else(|| rest.strip_prefix('s'))?;
        let (version, part) = rest.split_once(',').unwrap_or((rest, ""));
        let mut numbers = version.split(|sign: char| !sign.is_ascii_digit());
        let major = numbers.next().and_then(|text| text.parse().ok());
        // `2019Update5` is 2019.0 here.
        let minor = version.contains('.').then(|| numbers.next()?.parse().ok()).flatten();
        let is_read =
            part.is_empty() || ["MPI-1part", "MPI1part"].iter().any(|it| part.starts_with(it));
        let version = major.map(|major| (major, minor.unwrap_or(0)));
        Some(ImbTitle { version, is_read, on_gpus: part.ends_with("(GPU)") })
    }

    /// Up to version 2 it does not say that it ends.
    pub(super) fn ends(self) -> bool {
        self.version.is_none_or(|version| version >= (3, 0))
    }
}
