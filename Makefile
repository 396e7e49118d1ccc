# make tune   installs what is missing, builds, and tunes here (a virtual cluster where that can be
#             made, else the ranks that this machine holds)
# make test   installs what is missing, builds, and runs every test but those that take minutes;
#             COLIBRI_TEST_REQUIRE=all: a test that would be skipped fails
# make test-long    installs applications and a browser, and runs the tests that take minutes, all of these parts:
# make test-mockups mock-ups on MPICH with 5 and 8 ranks
# make test-preload every method of the preload library at every size, 1 to 8 ranks; RANKS="4 5": in parts
# make test-mpi4py  mpi4py's test suite with the preload library against the same without
# make programs MPICC="/path/mpicc ..."  builds the MPI program for each of these MPI libraries; the command
#             finds the one that fits the library at hand
# make install  installs below PREFIX (/usr/local) what is built; DESTDIR goes before every path
# make dist   a source archive in target/ that builds without network
# make release  an archive of programs in target/ that runs without a compiler: glibc 2.28 or newer, any Open MPI 4 or
#             5, MPICH, Intel MPI, MVAPICH
# make deps, make test-deps  install alone what tuning, and what only tests need
# make soak   random calls through the preload library for SECONDS (3600); SEED repeats a run
# make fuzz   damaged files and words through every parser, a million for each of small files: half an
#             hour; FUZZ_SEED takes other ones, FUZZ=5000 so many
# make bench  benchmarks; they want a quiet machine and say "inconclusive" on a loaded one. Before them, tuning
#             replayed against the record of a cluster: minutes, on any machine

CARGO ?= cargo
BUDGET ?= 5m
NODES ?= 8
DIR ?= colibri-run/$(shell date +%Y%m%d-%H%M%S)
PREFIX ?= /usr/local
MPICC ?= mpicc
BUILT = target/release
COLIBRI = $(BUILT)/colibri

.PHONY: help tune test test-long test-mockups test-preload test-mpi4py soak fuzz bench deps test-deps build compile \
    programs install dist release

help:
	@sed -n 's/^# //p' Makefile

tune: build
	@if why=$$($(COLIBRI) testbed check 2>&1); then \
	    $(COLIBRI) tune $(DIR) --budget $(BUDGET) --testbed $(NODES); \
	else \
	    echo "$$why"; echo "No virtual cluster here; tuning the ranks that this machine holds."; \
	    $(COLIBRI) tune $(DIR) --budget $(BUDGET); \
	fi

# Property tests draw the same cases each time, so that what passes here passes elsewhere; `cargo test`
# by itself draws new ones.
test: export PROPTEST_RNG_SEED ?= 20261122
test: test-deps
	$(CARGO) build --locked --workspace --lib --bins --tests
	$(CARGO) test --locked --workspace

# Tests say themselves that they take long: #[ignore = "takes minutes: make test-long"]. The soak has a time
# of its own, and so have replays of long records (make bench), too slow without optimisation.
test-long: deps
	@./install-dependencies test-long
	$(CARGO) build --locked --workspace --lib --bins --tests
	$(CARGO) test --locked --workspace --exclude colibri-tuning --no-fail-fast --lib --bins --tests -- \
	    --ignored --nocapture --skip as_long_as_wanted
	$(MAKE) test-mpi4py

test-mockups: test-deps
	$(CARGO) test --locked -p colibri-runner --test mockups -- --ignored

test-preload: build test-deps
	$(CARGO) test --locked -p colibri-preload --test conformance --test endings --test aliases \
	    --test interleaved --test lengths -- --ignored --nocapture

# Of the MPI libraries of PyPI: what has to do with collectives and communicators.
test-mpi4py: MPI4PY_CALLS = test_cco_buf test_cco_obj test_cco_nb_buf test_op test_comm
test-mpi4py: build test-deps
	./preload/tests/mpi4py
	WITH=mpich ./preload/tests/mpi4py
	WITH=openmpi5 RANKS="2 3" FAMILIES="1 6" ONLY="$(MPI4PY_CALLS)" ./preload/tests/mpi4py
	WITH=mpich5 RANKS="2 3" FAMILIES="1 6" ONLY="$(MPI4PY_CALLS)" ./preload/tests/mpi4py
	WITH=impi RANKS="2 3" FAMILIES="1 6" ONLY="$(MPI4PY_CALLS)" ./preload/tests/mpi4py

soak: test-deps
	$(CARGO) test --locked -p colibri-preload --test soak -- --ignored --nocapture

# A short form of it is part of `make test`. FUZZ and FUZZ_SEED are read by the tests themselves.
fuzz: export FUZZ ?= whole
fuzz:
	$(CARGO) test --locked --profile fuzz -p colibri-fuzz -p colibri-preload -p colibri-testbed -p colibri \
	    --lib --bins --test parsers --test tests damaged

bench: build
	$(CARGO) test --locked --release -p colibri-tuning --test engine -- --ignored --nocapture
	$(CARGO) bench --locked --no-run -p colibri -p colibri-models -p colibri-schedules
	@./benches/run

build: deps
	$(MAKE) compile

# By itself where packages are somebody else's to install.
compile:
	$(CARGO) build --locked --release --workspace --exclude colibri-fuzz

programs:
	./packaging/mpi-program $(BUILT) $(MPICC)

# Builds nothing that is built, so that root needs no Rust: `make build && sudo make install`.
install: export PREFIX := $(PREFIX)
install: export DESTDIR := $(DESTDIR)
install:
	@[ -x $(COLIBRI) ] || $(MAKE) build
	@./packaging/install $(BUILT)

dist:
	@./packaging/dist target

release:
	@./packaging/release target

deps:
	@./install-dependencies

test-deps: deps
	@./install-dependencies tests
