# nometal.ipi: a lab with `make lab`, its tests with `make test`. `make help` lists the rest.
LAB ?= inventory/rehearsal
# Further arguments for ansible-playbook: make lab ARGS='--check --diff'; or for a script of the tests.
ARGS ?=
PYTHON ?= python3
# Only as an argument of make: some systems have a variable of that name in everybody's environment.
BY_NAME = $(if $(filter command,$(firstword $(origin NAME))),--extra-vars '{"teardown_lab": "$(subst ','\'',$(NAME))"}')
CHECKPOINT = $(if $(filter command,$(firstword $(origin NAME))),--extra-vars '{"checkpoint_name": "$(subst ','\'',$(NAME))"}')
VENV := .venv
IN_VENV := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"

.DEFAULT_GOAL := help
.PHONY: help lab labs doctor rehearse status stop start teardown docs clean
.PHONY: test test-lint test-types test-sanity test-unit test-integration test-e2e test-molecule bench system-packages

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

lab: $(VENV)/.lab ## Set up the lab of LAB (inventory/rehearsal) on its host
	$(IN_VENV) ansible-playbook playbooks/site.yml -i $(LAB) $(ARGS)

doctor: $(VENV)/.lab ## Tell whether the host can carry the lab; change nothing
	$(IN_VENV) ansible-playbook playbooks/doctor.yml -i $(LAB) $(ARGS)

rehearse: $(VENV)/.lab ## Rehearse the installation on the lab as it stands
	$(IN_VENV) ansible-playbook playbooks/rehearse.yml -i $(LAB) $(ARGS)

stop: $(VENV)/.lab ## Shut the nodes of the lab down, workers first
	$(IN_VENV) ansible-playbook playbooks/stop.yml -i $(LAB) $(ARGS)

start: $(VENV)/.lab ## Switch on the nodes that were shut down, the control plane first
	$(IN_VENV) ansible-playbook playbooks/start.yml -i $(LAB) $(ARGS)

status: $(VENV)/.lab ## Show the state of the lab, and what to do next; change nothing
	$(IN_VENV) ansible-playbook playbooks/status.yml -i $(LAB) $(ARGS)

labs: $(VENV)/.lab ## List the labs that are on the hosts of LAB, whatever its lab_spec says
	$(IN_VENV) ansible-playbook playbooks/labs.yml -i $(LAB) $(ARGS)

.PHONY: export
export: $(VENV)/.lab ## Write the nodes of the lab, with the logins of their BMCs, for other installers
	$(IN_VENV) ansible-playbook playbooks/export.yml -i $(LAB) $(ARGS)

.PHONY: checkpoint checkpoint-remove checkpoints restore
checkpoint: $(VENV)/.lab ## Keep all nodes of the lab as they are, as NAME=...
	$(IN_VENV) ansible-playbook playbooks/checkpoint.yml -i $(LAB) $(CHECKPOINT) $(ARGS)

restore: $(VENV)/.lab ## Restore all nodes of the lab to checkpoint NAME=...
	$(IN_VENV) ansible-playbook playbooks/restore.yml -i $(LAB) $(CHECKPOINT) $(ARGS)

checkpoints: $(VENV)/.lab ## List the checkpoints of the lab
	$(IN_VENV) ansible-playbook playbooks/checkpoints.yml -i $(LAB) $(ARGS)

checkpoint-remove: $(VENV)/.lab ## Remove checkpoint NAME=...; the nodes stay as they are
	$(IN_VENV) ansible-playbook playbooks/checkpoint.yml -i $(LAB) $(CHECKPOINT) --extra-vars checkpoint_state=absent $(ARGS)

teardown: $(VENV)/.lab ## Remove the lab, or another one by NAME=..., and leave the host as it was
	$(IN_VENV) ansible-playbook playbooks/teardown.yml -i $(LAB) $(BY_NAME) $(ARGS)

# What is short runs beside the rest, in the order given.
PARTS = lint types unit sanity docs molecule caches hosts

test: ## Install what the tests need and run them all, with a summary
	@tests/run $(PARTS)

.PHONY: test-full test-matrix test-fast test-soak
N ?= 10
test-soak: ## Run all tests N times, every second time beside a hog on every core
	@tests/soak $(N) $(PARTS)

test-fast: ## Run what takes less than a minute: lint, types and unit tests
	@tests/run lint types unit

test-full: ## Run all tests, also those for which others stand in `make test`: two hours more
	@tests/run $(PARTS) full

test-lint test-types test-sanity test-unit test-integration test-molecule test-e2e test-matrix: test-%: ## Run one part of the tests
	@tests/run $*

bench: $(VENV)/.test ## Measure, as ratios within one run
	@for bench in tests/bench/bench_*.py; do PYTHONPATH=playbooks/collections $(VENV)/bin/python "$$bench" || exit 1; done

.PHONY: test-faults coverage
test-faults: $(VENV)/.test ## Plant faults in a copy, one by one, and see that tests catch them; ARGS='--part unit'
	@$(VENV)/bin/python tests/planted_faults.py $(ARGS)

OF ?= unit integration
coverage: ## Measure the lines and branches that the tests of parts OF reach
	@COVERAGE_OF='$(OF)' tests/run coverage

.PHONY: recordings
recordings: $(VENV)/.test ## Record anew, on hosts, what unit tests judge of broken labs and of installations that stand still
	$(IN_VENV) pytest --record tests/e2e/test_rehearsal_broken.py tests/e2e/test_install_stalls.py

docs: $(VENV)/.test ## Write what is generated: the reference of lab_spec, the roles' READMEs, the picture of a report
	$(VENV)/bin/python scripts/lab_reference.py
	$(VENV)/bin/python scripts/role_readmes.py
	$(VENV)/bin/python scripts/report_picture.py

.PHONY: docs-site
docs-site: $(VENV)/.test ## Build the documentation site, with pages of all modules and roles, in build/docs-site/html
	@$(VENV)/bin/python scripts/docs_site/build.py build/docs-site

.PHONY: execution-environment
EE := build/execution-environment
execution-environment: $(VENV)/.test ## Pack the collection, and write the build context of an execution environment with it
	@rm -rf $(EE)
	@$(IN_VENV) ansible-galaxy collection build --output-path $(EE)
	@$(IN_VENV) ansible-builder create --output-filename Containerfile --context $(EE)/context

clean: ## Remove the virtualenv and what the tests have built
	rm -rf $(VENV) build bmc/build bmc/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Virtualenvs. A marker file says what has been installed, and from which list.
$(VENV)/.made:
	@./scripts/make-venv $(PYTHON) $(VENV)
	@touch $@

$(VENV)/.lab: requirements.txt $(VENV)/.made
	@echo "Installing Ansible into $(VENV)"
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@touch $@

$(VENV)/.test: requirements.txt requirements-test.txt tests/system-packages.txt $(VENV)/.made
	@echo "Installing the tests' tools into $(VENV), in a minute or two"
	@./scripts/install-system-packages tests/system-packages.txt
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement requirements-test.txt
	@touch $@
