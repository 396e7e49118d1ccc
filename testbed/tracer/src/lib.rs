//! Preloaded: tells which of Open MPI's collective algorithms really ran
