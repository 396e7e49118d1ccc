//! The algorithms that are observed, in the order of Open MPI's list.

/// An algorithm that is observed.
pub struct TracedAlgorithm {
    /// Its name without Open MPI's prefix, such as `bcast_intra_pipeline` or `han_bcast_intra`.
    pub name: &'static str,
    /// What its parameters are called in the text.
    pub parameters: &'static [&'static str],
}

/// `ompi_coll_base_` and `mca_coll_` go.
const fn without_prefix(name: &'static str) -> &'static str {
    let prefix = match name.as_bytes() {
        [b'm', ..] => "mca_coll_",
        _ => "ompi_coll_base_",
    };
    name.split_at(prefix.len()).1
}

/// Lists the functions for which `interpose` has one.
macro_rules! listed {
    ($($collective:ident $passed:tt { $($name:ident ($($noted:ident),*);)* })*) => {
        /// Every algorithm that is observed.
        pub const ALGORITHMS: &[TracedAlgorithm] = &[$($(TracedAlgorithm {
            name: without_prefix(stringify!($name)),
            parameters: &[$(stringify!($noted)),*],
        }),*),*];
    };
}

libraries::openmpi_functions!(listed);
