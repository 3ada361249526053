# Thin: the build itself is CMake's (CMakeLists.txt, CMakePresets.json).
# Each target first installs the Debian packages it needs, unless they are there already.

PREFIX ?= /usr/local

.PHONY: help demo test check simulate fuzz mutants bench format tidy release install deb tarball pictures clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

demo: ## build Leasehold with its embedded store and watch it work: about ten seconds, after three or four minutes of building; no server
	@scripts/need build
	@cmake --preset demo --log-level=WARNING
	@cmake --build --preset demo
	@build/demo/cli/leasehold demo

test: ## all tests once, with real servers, under ASan+UBSan: 12 to 20 minutes on two cores (ONLY=adapters/redis: that folder's)
	@scripts/need build stores test npm
	@scripts/test --name test $(if $(ONLY)$(PRESETS),,--at-most 720) $(if $(ONLY),--only "$(ONLY)") $(or $(PRESETS),asan)

check: ## what else there is, 16 to 28 minutes: as shipped by gcc, TSan, fuzzers, long simulation, formatting, layers, documents
	@scripts/need build stores test
	@scripts/test --name check --at-most 1380 shipped tsan fuzz formatting

simulate: ## look for faults in virtual time, as long as you like (SECONDS=60 SEED=1)
	@scripts/need build stores test
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev --target leasehold_simulate
	@build/dev/drill/simulation/leasehold_simulate --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

fuzz: ## look for inputs that break a parser (SECONDS=30 for each)
	@scripts/need build stores fuzz
	@scripts/fuzz $(or $(SECONDS),30)

mutants: ## put known bugs into the adapters: each must turn a test red
	@scripts/need build stores test npm
	@scripts/mutants

bench: ## measure, beside hand-written clients of every store: a quarter of an hour besides the build (QUICK=1: four minutes)
	@scripts/need build stores bench
	@cmake --preset bench --log-level=WARNING
	@cmake --build --preset bench
	@bench/run build/bench $(if $(QUICK),--quick)

format: ## format the sources
	@scripts/need format
	@scripts/format

tidy: ## clang's warnings, its thread-safety analysis and clang-tidy, over all but the tests
	@scripts/need build stores tidy
	@cmake --preset tidy --log-level=WARNING
	@cmake --build --preset tidy

release: ## build what 'make install' installs: twelve minutes on two cores
	@scripts/need build stores
	@rm -f build/release/complete
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release
	@touch build/release/complete

install: ## install what 'make release' built: program, manual, documents, libraries, CMake package (PREFIX=/usr/local)
	@test -f build/release/complete || { echo "Please run 'make release' first (not as root), to its end."; exit 1; }
	@cmake --install build/release --prefix $(PREFIX) --strip

PACK = cpack --config build/release/CPackConfig.cmake -B build/packages

deb: release ## Debian packages in build/packages: the program, each module, the library
	@scripts/need deb
	@rm -f build/packages/*.deb
	@$(PACK) -G DEB
	@rm -r build/packages/_CPack_Packages

tarball: release ## build/packages/leasehold-*.tar.gz: program and modules in a folder that runs where it is unpacked
	@$(PACK) -G TGZ
	@rm -r build/packages/_CPack_Packages

pictures: release ## make the pictures in docs/pictures anew, from a demo and a drill
	@scripts/need pictures
	@scripts/pictures build/release/cli/leasehold

clean: ## remove everything built
	rm -rf build
