# One target for each task. CI uses the same targets. `make help` lists them.
.PHONY: help run compositor dist dist-test test test-all test-changed check bench fuzz soak asan tsan screenshots plots docs thirty-lines attacks cluster cluster-test

help:
	@echo "make run          build and start the server; ends by printing its URL"
	@echo "make dist         build an archive and a Debian package for others to install, in artifacts/dist"
	@echo "make dist-test    install them on clean Debian systems, upgrade and remove them; needs root"
	@echo "make test         test every behavior once: rules, sockets, pages, real browsers"
	@echo "make test-all     run the whole matrix: every browser test in every engine, with screenshots"
	@echo "make test-changed run the tests that a change since main can affect"
	@echo "make check        check format, imports between targets, types of the web files and documents"
	@echo "make bench        run the benchmarks, each next to a comparable program"
	@echo "make fuzz         fuzz every parser for five seconds, guided by coverage"
	@echo "make soak         run a million model events, and fuzz every parser for ten minutes"
	@echo "make asan, tsan   run the Swift tests with the address or the thread sanitizer"
	@echo "make attacks      attack the built server from outside, through raw sockets"
	@echo "make cluster      start a cluster on this machine to try it: PostgreSQL, Redis, two nodes, HAProxy"
	@echo "make compositor   build and test the compositor of broadcasts, if FFmpeg's headers are installed"
	@echo "make cluster-test let the parts of a cluster fail, and print what people notice"
	@echo "make docs         build the documentation of the Swift SDK, in artifacts/docs"
	@echo "make thirty-lines  build the example of the Swift SDK, and run it against the server of make run"
	@echo "make plots        draw the simulations of congestion control, in artifacts/plots"
	@echo "make screenshots  save screenshots of every state of the pages in artifacts/screenshots"

run: ; @scripts/run
dist: ; @scripts/dist
dist-test: ; @scripts/dist-test
test: ; @scripts/test
test-all: ; @scripts/test --all
test-changed: ; @scripts/test --changed
check: ; @scripts/check
bench: ; @scripts/bench
fuzz: ; @scripts/fuzz
soak: ; @scripts/soak
asan: ; @scripts/sanitize address
tsan: ; @scripts/sanitize thread
attacks: ; @scripts/attacks
cluster: ; @scripts/cluster
compositor: ; @scripts/compositor test
cluster-test: ; @scripts/cluster-test
screenshots: ; @scripts/screenshots
plots: ; @scripts/plots
docs: ; @scripts/docs
thirty-lines: ; @scripts/thirty-lines
