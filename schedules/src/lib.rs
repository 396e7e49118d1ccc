//! Topologies, algorithms as schedules, the checker and the simulator
