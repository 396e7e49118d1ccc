//! The MPI programs: they measure a platform and time methods by a plan
