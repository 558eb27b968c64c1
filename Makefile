# Two commands do all the set-up: `make demo` and `make test`. Everything they need comes from the module proxy and npm.
SHELL := /bin/bash -o pipefail
# With -trimpath, what was compiled in one clone serves every other one. The tags leave out what Temporal's own releases leave out
# (workers that Kubernetes starts) and the xDS client of Google's storage library: a sixth of all that is compiled. Without
# debugging information it is compiled in 0.93 of the time and takes three quarters of the room; stack traces do not need it.
export GOFLAGS := -buildvcs=false -trimpath -tags=release,disable_grpc_modules -gcflags=all=-dwarf=false
# What there still is of it, in assembly and in the standard library's C, is left out of binaries.
LINK = -ldflags='-w $(RELEASE)'
# VERSION names a release: its binaries say so, and which commit they are of. Others are linked without, so that a commit alone
# links nothing anew.
RELEASE = $(if $(VERSION),$(foreach set,version=$(VERSION) commit=$(shell git describe --always --abbrev=40 --exclude='*' \
	--dirty=+) date=$(shell git log -1 --format=%cI),-X github.com/deployctl/deployctl/internal/sys/build.$(set)))
# Compilers, linters and the services of tests spend a tenth of their time on collecting garbage, where memory is plenty. What is
# measured, and what a user starts, collects as usual.
build build-client next next-embedded peers stockengine check test e2e fuzz mutants: export GOGC := 400
# The stock CLI, language hosts, and a provider on a fake cloud: without them there is nothing to test.
WITH_PEERS = peers=$$(tools/peers/build) && PATH="$$peers:$(CURDIR)/bin:$$PATH"
# The modules of the workspace besides the product, which is ./...: a pattern ends where another module begins. What is no part of
# the workspace is built outside, with versions of its own.
EMBEDDED = ./cmd/deployctl/deployctl-embedded
TOOL = GOWORK=off go -C tools
# Packages are started in this order, a few at a time. The longest lead, so that none is left alone in the end: those that start
# the built binary and wait for it, and between them those that compute.
LONGEST = ./e2e ./e2e/attack ./e2e/pulumicli ./internal/plugin/languagehost ./e2e/languages ./statestore ./activities \
	./e2e/chaos $(EMBEDDED)/... ./e2e/hostile
E2E = ./e2e ./e2e/pulumicli ./e2e/languages ./e2e/chaos ./e2e/attack ./e2e/hostile $(EMBEDDED)/... ./e2e/...
UNIT = ./internal/plugin/languagehost ./statestore ./activities ./...

.PHONY: all build build-client next next-embedded peers stockengine differential demo check test soak static tests unit-short fuzz \
	mutants race lint workflowcheck imports alerts cross cross-build e2e long test-real test-production attack bench chaos rounds record generate \
	release clean help

help: ## say what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

build: ## the binaries, in bin: deployctl, and deployctl-embedded with the embedded service
	@[ -x bin/deployctl-embedded ] || echo "building deployctl: the first build compiles Temporal's server, its Web UI and an S3 server, 5 to 10 minutes on two cores; later ones take seconds" >&2
	go build $(LINK) -o bin/ ./cmd/deployctl $(EMBEDDED)

# Another revision of the workflows, for tests of upgrades. It differs by what the linker sets, so nothing is compiled twice.
NEXT = $(foreach set,revision=3 oldest=3 perSave=5,-X github.com/deployctl/deployctl/workflows.$(set))

next:
	go build -ldflags='-w $(NEXT)' -o bin/deployctl-next ./cmd/deployctl

next-embedded: next
	go build -ldflags='-w $(NEXT)' -o bin/deployctl-next-embedded $(EMBEDDED)

demo: ## run the main job for real: a website on the embedded service
	@tools/demo

check: build-client ## while you work: it compiles, lint, words, imports, and the tests that need no peers
	@$(MAKE) --no-print-directory -j2 lint imports unit-short

test: build peers stockengine ## the gate: everything that must hold before a change lands
	@$(MAKE) --no-print-directory -j2 --output-sync=none static tests

soak: ## for a night: what looks for faults by chance, and what takes long
	@$(MAKE) --no-print-directory race mutants fuzz alerts attack long
	@$(MAKE) --no-print-directory differential SEEDS=1-500
	@$(MAKE) --no-print-directory chaos rounds

static: lint workflowcheck imports cross

lint:
	tools/lint/run
	go run ./tools/words

workflowcheck: ## workflows, and what they call in the core, are deterministic
	checker=$$(tools/cached workflowcheck go.temporal.io/sdk/contrib/tools/workflowcheck) && \
		$$checker -config tools/workflowcheck/config.yaml ./workflows ./engine

imports: ## no room reaches, however far, what it must not know
	@tools/imports

# promtool without the discovery of services in clouds compiles in a third of the time.
alerts: ## alert rules and dashboards use metrics that there are, and the rules pass their unit tests
	promtool=$$(GOFLAGS='$(GOFLAGS) -tags=remove_all_sd' tools/cached prometheus github.com/prometheus/prometheus/cmd/promtool) && \
		$$promtool check config --syntax-only deploy/prometheus/prometheus.yml && \
		$$promtool check rules deploy/prometheus/alerts.yml && $$promtool test rules deploy/prometheus/alerts_test.yml
	$(TOOL)/prometheus run . $(CURDIR)

# The test harnesses send Unix signals, so they are left out on Windows.
cross: ## it compiles for macOS and Windows (a type check from source; nothing is built)
	@mkdir -p bin
	$(TOOL)/crosscheck build -o $(CURDIR)/bin/crosscheck .
	bin/crosscheck darwin/arm64 ./... ./e2e/... $(EMBEDDED)/...
	bin/crosscheck windows/amd64 $$(go list ./... | grep -v -e /tools/steady$$) $(EMBEDDED)/...

cross-build: ## build it for macOS and Windows (10 minutes without a cache)
	GOOS=darwin GOARCH=arm64 go build -o /dev/null $(EMBEDDED)
	GOOS=windows GOARCH=amd64 go build -o /dev/null $(EMBEDDED)

# One call of go test for all, so that compilers, tests that compute and tests that wait share the processors. lint has vetted
# everything already. The limit only ends a test that hangs.
TEST = go test -vet=off -timeout 60m $(TESTFLAGS)

tests:
	$(WITH_PEERS) $(TEST) -p 4 -parallel 5 $(LONGEST) $(E2E) $(UNIT)
	$(TOOL)/fakeprovider test ./...
	$(TOOL)/crosscheck test ./...
	$(TOOL)/prometheus test ./...
	$(TOOL)/release test .

unit-short:
	$(TEST) -short $(UNIT)

# The detector makes tests several times slower, and has all that they import compiled once more. Packages that run nothing in
# parallel, or only processes, are left out.
RACED = $$(go list ./... | grep -v -e /internal/devserver -e /testkit/scenario -e /tools/ -e /docs$$ \
	-e /engine/modeltest$$ -e /catalogue$$ -e /examples -e /plugin/languagehost$$)

race: ## no goroutine of the service, or of a unit test, changes what another one uses
	go test -race -vet=off -short -timeout 60m $(TESTFLAGS) $(RACED)

MUTATED = $$(grep -rl --include=*_test.go -e mutanttest.Play -e mutanttest.Only . | xargs -n1 dirname | sort -u)

mutants: ## the tests notice each way in which the code is broken on purpose
	go test -vet=off -count=1 -parallel 2 -timeout 0 -run 'TestMutantsAreCaught|TestAChangeThatIsNotDeterministicIsNoticed' $(MUTATED) -args -mutants

# Two processes look for this long at each target. A protocol of several targets takes it in parts, so that each gets a minute.
FUZZTIME ?= 30s
FUZZPART ?= 4s
FUZZED = internal/plugin/pluginhost:FuzzEngine internal/plugin/pluginhost:FuzzProviderAnswers internal/plugin/pluginhost:FuzzLanguageHostAnswers
FUZZED_PARTS = activities:FuzzRegisterResource activities:FuzzReadResource activities:FuzzInvoke activities:FuzzCall \
	activities:FuzzRegisterResourceOutputs activities:FuzzRegisterPackage activities:FuzzStepsOverAnswers internal/service/gitpush:FuzzEvents \
	internal/edge/pulumiapi:FuzzRequests internal/edge/console:FuzzPages internal/values/glob:FuzzText internal/values/glob:FuzzPath \
	engine:FuzzPatterns \
	internal/values/redaction:FuzzReplace statestore/journal:FuzzReplay internal/values/rawjson:FuzzTexts internal/service:FuzzClientEvents \
	statestore:FuzzDeployments statestore:FuzzEncrypted statestore/leases:FuzzEdits deployments:FuzzGrants deployments:FuzzClaims \
	deployments:FuzzDeploymentSettings internal/host/autonaming:FuzzPatterns internal/edge/grpcapi:FuzzCalls internal/values/token:FuzzTokens \
	engine:FuzzRun internal/values/safetext:FuzzNothingThatATerminalObeysIsLeft internal/settle/errorclass:FuzzPatterns \
	internal/values/valuediff:FuzzADiffIsEmptyExactlyForEqualTexts internal/plugin/intake:FuzzFrames internal/plugin/intake:FuzzValues \
	internal/settle/settlerule:FuzzRules internal/settle/stackkeys:FuzzValues \
	catalogue:FuzzMapping internal/service:FuzzCron internal/service/identity:FuzzIssuers internal/plugin/plugins:FuzzLocks \
	internal/plugin/plugins:FuzzArchives internal/host/policies:FuzzConfigurations internal/host/session:FuzzManifests \
	internal/host/lookup:FuzzDeclarations internal/project/pythonproject:FuzzProjects \
	internal/project/npmworkspace:FuzzWorkspaces internal/host/assets:FuzzAnswers internal/sys/outbound:FuzzURLs worker:FuzzPayloads

fuzz: ## each protocol that programs and plugins speak, a minute of processor time; findings stay in testdata/fuzz
	tools/fuzz $(FUZZTIME) $(FUZZED)
	tools/fuzz $(FUZZPART) $(FUZZED_PARTS)

peers:
	@tools/peers/build >/dev/null

stockengine: # Pulumi's own engine, which differential compares with; it shares what it compiles with the stock CLI
	@tools/peers/build pulumi stockengine >/dev/null

e2e: build peers stockengine ## the end-to-end tests alone
	$(WITH_PEERS) $(TEST) -p 4 -parallel 5 $(E2E)

long: build peers stockengine ## the slow packages with the tests that soaktest.Only keeps out of `make test`
	$(WITH_PEERS) go test -vet=off -p 1 -parallel 4 -count=1 -timeout 2h ./e2e ./e2e/languages ./e2e/interop ./e2e/pulumicli \
		./e2e/recovery ./e2e/chaos ./e2e/differential ./internal/plugin/languagehost ./cmd/deployctl/deployctl-embedded/servers ./internal/sandbox ./internal/terminal/templates ./providers/s3 ./providers/postgres \
		-args -full
	$(TOOL)/release test ./render

bench: build ## the table against the stock CLI
	$(WITH_PEERS) go run ./e2e/bench

chaos: build next-embedded ## show every claim of docs/durability.md; CLAIM=kills SEEDS=1-20 shows, or resumes, a part; PART=10 a tenth of each
	$(WITH_PEERS) go run ./e2e/chaos -claim '$(CLAIM)' -seeds '$(SEEDS)' $(if $(PART),-part $(PART))

REAL ?= 1-30
test-real: build ## real providers against real servers: their lives, and REAL (1-30) seeds of lost answers and kills
	$(WITH_PEERS) go test -vet=off -count=1 -v -timeout 1h ./e2e/real -args -real -seeds $(REAL)

test-production: build next ## upgrades, outages, new keys and clocks apart on Temporal with PostgreSQL and an S3 server, as in production
	$(WITH_PEERS) go test -vet=off -count=1 -v -timeout 2h ./e2e/production -args -production

differential: build stockengine ## compare random programs with Pulumi's own engine; SEEDS=1-2000 plays, or resumes, these
	$(WITH_PEERS) go run ./e2e/differential $(if $(SEEDS),-seeds '$(SEEDS)') $(ARGS)

attack: build ## play every attack of docs/security.md at full size
	$(WITH_PEERS) go test -p 1 -parallel 1 -count=1 -v -timeout 4h ./e2e/attack -args -full
	$(WITH_PEERS) go test -count=1 -timeout 30m ./e2e/hostile -args -full
	$(WITH_PEERS) go test -count=1 -timeout 30m ./e2e/secrecy -args -full
	$(WITH_PEERS) go test -count=1 -timeout 30m -run 'AnotherUser|APayload' ./e2e -args -full
	tools/fuzz $(FUZZTIME) internal/edge/grpcapi:FuzzCalls internal/values/token:FuzzTokens

ROUNDS ?= 20
ROUND = $(WITH_PEERS) go test -vet=off -p 1 -parallel 4 -failfast -count=1 -timeout 2h -run 'NewUser|Kill|NeverMadeTwice|Save|FirstStart|Survives|CtrlC|Cancel|ServiceThat|Terminated'

rounds: build ## the walk and the kill tests, ROUNDS (20) times in a row, until each has met the moment that it aims at
	@for round in $$(seq $(ROUNDS)); do \
		($(ROUND) ./e2e -args -full) && ($(ROUND) ./e2e/recovery) || exit 1; echo "round $$round of $(ROUNDS) held"; done

record: build ## docs/killed-update.svg anew: a real update whose service is killed (needs tmux)
	peers=$$(tools/peers/build pulumi-language-yaml) && PATH="$(CURDIR)/bin:$$peers:$$PATH" \
		&& $(TOOL)/record run . $(CURDIR)/tools/record/project $(CURDIR)/docs/killed-update.svg

generate: ## the API's generated code
	go generate ./api/...

release: ## what VERSION is installed from, in dist: archives, packages, an image, a chart, a compose file; PLATFORMS=linux/amd64 only some
	$(TOOL)/release run . -root $(CURDIR) -dist $(CURDIR)/dist -version '$(VERSION)' -platforms '$(PLATFORMS)'

clean:
	rm -rf bin dist
