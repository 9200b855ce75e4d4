# One command each; CI calls the same ones. `make help` lists them.
.PHONY: help run test check bench soak screenshots

help:
	@echo "make run          build and start the server; ends by printing its URL"
	@echo "make test         every test: rules, sockets, pages, real browsers"
	@echo "make check        format, imports between targets, types of the web files, the map in README"
	@echo "make bench        measurements, CPU time beside a peer in the same run"
	@echo "make soak         the long figures: a million model events"
	@echo "make screenshots  pictures of every state of the page, in artifacts/screenshots"

run: ; @scripts/run
test: ; @scripts/test
check: ; @scripts/check
bench: ; @scripts/bench
soak: ; @scripts/soak
screenshots: ; @scripts/screenshots
