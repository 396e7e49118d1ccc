//! Preloaded: turns sched_yield into a short sleep, so that waiting ranks leave the cores to others
