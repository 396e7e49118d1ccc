//! The algorithms that are observed, in the order of Open MPI's list.

/// An algorithm that is observed.
pub struct TracedAlgorithm {
    /// Its name without Open MPI's prefix, such as `bcast_intra_pipeline`.
    pub name: &'static str,
    /// What its parameters are called in the text.
    pub parameters: &'static [&'static str],
}

/// Lists the functions for which `interpose` has one.
macro_rules! listed {
    ($($collective:ident $passed:tt { $($name:ident ($($noted:ident),*);)* })*) => {
        /// Every algorithm that is observed.
        pub const ALGORITHMS: &[TracedAlgorithm] = &[$($(TracedAlgorithm {
            name: stringify!($name).split_at("ompi_coll_base_".len()).1,
            parameters: &[$(stringify!($noted)),*],
        }),*),*];
    };
}

libraries::openmpi_functions!(listed);
