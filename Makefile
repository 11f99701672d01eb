# The commands a person has to know. Everything builds with the committed Cargo.lock.

.DEFAULT_GOAL := help
.PHONY: help run test check bench dist docs openapi

# `make run RELEASE=1` takes longer to build and gives an optimised program.
profile := $(if $(RELEASE),release,debug)
target := $(or $(CARGO_TARGET_DIR),target)

# What the tests add to the dependencies of the workspace. Without it everything that depends on tokio, so most of it, would be
# compiled twice. (`make run` shares nothing with the tests anyway: what signalboxctl shows adds features further down.)
as_tested := --features tokio/test-util

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf 'make %-8s %s\n' "$$name" "$$text"; done

run: ## build, then show this machine in a throw-away service (RELEASE=1: optimised)
	cargo build --package signalbox --package signalbox-agent --bins --locked $(if $(RELEASE),--release --features signalbox/jemalloc)
	$(target)/$(profile)/signalbox demo --fleet $(or $(SIGNALBOX_FLEET),24)

test: ## install what the tests need, run all of them, and check the API against its document
	scripts/test

check: ## words, formatting, lints, links in the code's documentation, dependencies, what the hot paths cost
	scripts/check

bench: ## build optimised and run the load generator
	bench/run

dist: ## build a release in target/dist-packages: programs, .deb, .rpm, images (KEY=FILE: signed; CPUS="x86_64 aarch64": only these)
	scripts/dist $(if $(KEY),--key '$(KEY)') $(if $(CPUS),--cpus '$(CPUS)')

docs: openapi ## write everything that is made from the code: what `make openapi` writes, and the reference's tables
	SIGNALBOX_WRITE_DOCS=1 cargo test --workspace --locked --quiet --test reference

openapi: ## write openapi.json and the interface's list of metrics from the code
	cargo build --workspace --locked $(as_tested)
	SIGNALBOX_WRITE_METRICS=1 cargo test --workspace --locked --quiet --test listing
	$(target)/debug/signalbox openapi >$(target)/openapi.json
	mv $(target)/openapi.json openapi.json
