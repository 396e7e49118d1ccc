//! Elements that lie in memory however MPI lets them: bounds anywhere, extents of nothing, backwards, shorter
//! than the data or much longer, parts of one element between those of others.

mod late;
mod memory;
mod methods;
mod right;
mod shape;
