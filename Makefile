# One command each; CI calls the same ones. `make help` lists them.
.PHONY: help run test test-all test-changed check bench fuzz soak asan tsan screenshots

help:
	@echo "make run          build and start the server; ends by printing its URL"
	@echo "make test         every behavior once: rules, sockets, pages, real browsers"
	@echo "make test-all     the whole matrix: every browser test in every engine, with screenshots"
	@echo "make test-changed what a change since main can reach"
	@echo "make check        format, imports between targets, types of the web files, the map in README"
	@echo "make bench        measurements, CPU time beside a peer in the same run"
	@echo "make fuzz         random bytes for every parser, guided by coverage, five seconds each"
	@echo "make soak         the long figures: a million model events, ten minutes of bytes for every parser"
	@echo "make asan, tsan   the Swift tests with the address or the thread sanitizer"
	@echo "make screenshots  pictures of every state of the page, in artifacts/screenshots"

run: ; @scripts/run
test: ; @scripts/test
test-all: ; @scripts/test --all
test-changed: ; @scripts/test --changed
check: ; @scripts/check
bench: ; @scripts/bench
fuzz: ; @scripts/fuzz
soak: ; @scripts/soak
asan: ; @scripts/sanitize address
tsan: ; @scripts/sanitize thread
screenshots: ; @scripts/screenshots
