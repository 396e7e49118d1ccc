# make tune   installs what is missing, builds, and tunes here (a virtual cluster where that can be
#             made, else the ranks that this machine holds)
# make test   installs what is missing, builds, and runs every test
# make bench  benchmarks; they want a quiet machine and say "inconclusive" on a loaded one

CARGO ?= cargo
BUDGET ?= 5m
NODES ?= 8
DIR ?= colibri-run/$(shell date +%Y%m%d-%H%M%S)
COLIBRI = target/release/colibri

.PHONY: help tune test bench deps build

help:
	@sed -n 's/^# //p' Makefile

tune: build
	@if why=$$($(COLIBRI) testbed check 2>&1); then \
	    $(COLIBRI) tune $(DIR) --budget $(BUDGET) --testbed $(NODES); \
	else \
	    echo "$$why"; echo "No virtual cluster here; tuning the ranks that this machine holds."; \
	    $(COLIBRI) tune $(DIR) --budget $(BUDGET); \
	fi

test: build
	$(CARGO) build --locked --workspace
	$(CARGO) test --locked --workspace

bench: build
	$(CARGO) bench --locked --no-run -p colibri-models -p colibri-schedules
	@./benches/run

build: deps
	$(CARGO) build --locked --release --workspace

deps:
	@./install-dependencies
