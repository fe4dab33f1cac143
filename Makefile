# conch and coord. `make help` prints the targets; .ci/run is what has to pass before a change lands.

GO      ?= go
BIN     := $(CURDIR)/bin
COVER   := $(CURDIR)/cover
MODULE  := github.com/go-coord/coord

# What a binary says of itself. A tree without git builds as well.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DATE    ?= $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo unknown)

LDFLAGS := -s -w -X $(MODULE)/internal/cli.Version=$(VERSION) -X $(MODULE)/internal/cli.Commit=$(COMMIT) -X $(MODULE)/internal/cli.Date=$(DATE)
# Without gRPC's tracing pages, which would link html/template and net/http's server side.
BUILD   := CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath -tags grpcnotrace

# Unit packages run side by side; what stands in test/ runs real clusters and real signals, one at a time. Examples run there.
UNIT = $(shell $(GO) list ./... | grep -v -e '/test/' -e '/bench' -e '/examples/')

.DEFAULT_GOAL := help

.PHONY: help
help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the commands into bin/: static, stripped, reproducible
	@mkdir -p $(BIN)
	$(BUILD) -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/conch ./cmd/conchd ./cmd/conch-dev
	$(BUILD) -ldflags '-s -w' -o $(BIN)/holdguard ./cmd/conch-guard

.PHONY: tools
tools: $(BIN)/etcd $(BIN)/etcdctl $(BIN)/staticcheck ## build etcd, etcdctl and staticcheck of tools/go.mod into bin/

$(BIN)/etcd: tools/go.mod
	@mkdir -p $(BIN)
	cd tools && $(BUILD) -o $@ go.etcd.io/etcd/server/v3

$(BIN)/etcdctl: tools/go.mod
	@mkdir -p $(BIN)
	cd tools && $(BUILD) -o $@ go.etcd.io/etcd/etcdctl/v3

$(BIN)/staticcheck: tools/go.mod
	@mkdir -p $(BIN)
	cd tools && $(BUILD) -o $@ honnef.co/go/tools/cmd/staticcheck

.PHONY: test
test: build $(BIN)/etcd $(BIN)/etcdctl unit ## run all tests: unit packages, then scripts, processes and clusters
	CGO_ENABLED=0 $(GO) test -timeout 25m -count=1 -p 1 ./test/... ./bench/...

.PHONY: unit
unit: ## run the tests of the unit packages, and keep their coverage
	@mkdir -p $(COVER)
	CGO_ENABLED=0 $(GO) test -timeout 10m -coverprofile=$(COVER)/unit.out $(UNIT)

$(COVER)/unit.out:
	$(MAKE) unit

.PHONY: cover
cover: $(COVER)/unit.out ## hold the coverage of the last run against test/house/coverage.txt
	$(GO) run ./test/house/cover test/house/coverage.txt $(COVER)/unit.out

.PHONY: mutants
mutants: ## break each rule of the safety core on purpose, and see that a test turns red (about a minute)
	$(GO) run ./test/mutants

.PHONY: race
race: ## run the unit packages under the race detector, what is random less often
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m $(UNIT)

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w $$(find . -name '*.go' -not -path './bin/*')

.PHONY: lint
lint: $(BIN)/staticcheck ## formatting, vet, staticcheck, the rules of the house, shell scripts
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { printf 'not formatted:\n%s\n' "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(BIN)/staticcheck ./...
	$(GO) test ./test/house
	bash .ci/shell

.PHONY: arch
arch: ## compile and vet for six 64-bit Linux targets, macOS and FreeBSD; run the library's tests on all six (qemu)
	bash .ci/arch arm64 riscv64 loong64 ppc64le s390x

.PHONY: bench
bench: build $(BIN)/etcd $(BIN)/etcdctl ## measure against what else does the same, in one run, and print ratios; BENCH=-write makes the documents
	$(GO) run ./bench $(BENCH)

.PHONY: model
model: ## search the models of the protocol in docs/model, also those that take minutes (spin)
	$(GO) run ./test/model -all -memory 8000

# How long the churn goes on, how many days of jobs are played, and in how much time.
CHURN  ?= 30m
DAYS   ?= 6
WITHIN ?= 40m

.PHONY: soak
soak: ## play DAYS of jobs WITHIN a time, and CHURN for another: nothing may grow (docs/soak.md)
	CGO_ENABLED=0 $(GO) test ./test/soak -count=1 -v -timeout 24h -soak.for=$(CHURN) -soak.days=$(DAYS) -soak.within=$(WITHIN)

# How long `make chaos` lets faults happen, and what else it is told, as in CHAOS='-seed 7 -v'.
DURATION ?= 60s

.PHONY: chaos
chaos: build $(BIN)/etcd ## break a real cluster, and audit what happened: DURATION=1h, CHAOS='-seed 7'
	$(GO) run ./test/chaos -for $(DURATION) $(CHAOS)

.PHONY: ci
ci: ## everything that has to pass before a change lands
	bash .ci/run

# The database is Go's, byte for byte; its version is the release that Go names, and what begins the SHA-256 of the file.
SCHEDULE := internal/cron/schedule

.PHONY: tzdata
tzdata: ## renew the time zones of schedules from the Go distribution in use
	cp "$$($(GO) env GOROOT)/lib/time/zoneinfo.zip" $(SCHEDULE)/zoneinfo.zip
	printf '%s-%s\n' "$$(sed -n 's/^DATA=//p' "$$($(GO) env GOROOT)/lib/time/update.bash")" \
		"$$(sha256sum $(SCHEDULE)/zoneinfo.zip | cut -c 1-12)" >$(SCHEDULE)/zoneinfo.version

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN) $(COVER) dist
