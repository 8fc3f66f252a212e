# The root only loops over the folders; what a verb does stands in each folder's own Makefile.
FOLDERS := spec keyservice java python c conformance-tests examples
LOOPED := setup fmt lint bench clean

.DEFAULT_GOAL := help
.PHONY: help demo test conformance faults soak $(LOOPED)

help: ## Show the verbs
	@echo "make demo    the main job: encrypt in Java, decrypt in Java and Python, look at the broker's disk"
	@echo "make test    all tests of all languages; ends with the line 'N passed, N failed'"
	@echo "make conformance   every SDK reads what every other writes; 'make test' has a smaller run of it"
	@echo "make faults  every SDK under load while key service, Vault, brokers, network and clocks are in trouble"
	@echo "make soak MINUTES=60   every SDK for long; shows whether memory or descriptors grow"
	@echo "make setup   install what the folders need (apt packages only if missing)"
	@echo "make fmt     format all code;  make lint  check it, warnings are errors"
	@echo "make bench   all benchmarks;   make clean remove what was built"
	@echo "Each verb also works in one folder: make -C java test"

demo: ## The main job, end to end
	@$(MAKE) --no-print-directory -C examples demo

test: ## All tests of all languages; a failing folder does not hide the next one
	@python3 .ci/test_all.py $(FOLDERS)

conformance: ## Every SDK against every other, by their drivers; writes conformance-tests/build/test-results/index.html
	@$(MAKE) --no-print-directory -C conformance-tests conformance

faults: ## Clients under load while key service, Vault, brokers, network and clocks are in trouble; under half an hour
	@$(MAKE) --no-print-directory -C conformance-tests faults

soak: ## MINUTES=60: writing and reading while a data key lives two seconds; memory and descriptors watched
	@$(MAKE) --no-print-directory -C conformance-tests soak

$(LOOPED):
	@set -e; for folder in $(FOLDERS); do echo "== $$folder: $@"; $(MAKE) --no-print-directory -C $$folder $@; done
