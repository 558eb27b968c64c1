# Two commands do all the set-up: `make demo` and `make test`. Everything they need comes from the module proxy and npm.
SHELL := /bin/bash -o pipefail
export GOFLAGS := -buildvcs=false
# Without debugging information a binary is a fifth smaller, and linked in two thirds of the time. Stack traces do not need it.
LINK = -ldflags=-w
# Compilers, linters and the services of tests spend a tenth of their time on collecting garbage, where memory is plenty.
build next peers stockengine lint unit fuzz e2e: export GOGC := 400
# The stock CLI, language hosts, and a provider on a fake cloud: without them there is nothing to test.
WITH_PEERS = peers=$$(tools/peers/build) && PATH="$$peers:$(CURDIR)/bin:$$PATH"
PKGS = $$(go list ./... | grep -v -e /internal/devserver -e /e2e$$ -e /e2e/attack -e /e2e/hostile -e /e2e/languages -e /e2e/interop -e /e2e/pulumicli -e /e2e/secrecy -e /e2e/recovery -e /bench$$ -e /chaos$$ -e /differential$$)

.PHONY: all build next peers stockengine differential demo test fuzz unit mutants lint workflowcheck imports cross cross-build e2e attack bench chaos record generate clean help

help: ## say what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

build: ## the binaries, in bin: deployctl, and deployctl-embedded with the embedded service
	@[ -x bin/deployctl-embedded ] || echo "building deployctl: the first build compiles Temporal's server, its Web UI and an S3 server, 5 to 10 minutes on two cores; later ones take seconds" >&2
	go build $(LINK) -o bin/ ./cmd/deployctl/...

next: # another build, for tests of upgrades
	go build $(LINK) -tags nextrevision -o bin/deployctl-next ./cmd/deployctl
	go build $(LINK) -tags nextrevision -o bin/deployctl-next-embedded ./cmd/deployctl/deployctl-embedded

demo: ## run the main job for real: a website on the embedded service
	@tools/demo

# What comes before the end-to-end tests is made two targets at a time: each leaves the processors idle now and then.
test: build next peers stockengine ## everything that must hold
	@$(MAKE) --no-print-directory -j2 lint unit fuzz workflowcheck imports cross
	@$(MAKE) --no-print-directory e2e

lint:
	@mkdir -p bin
	go build -C tools/lint -o $(CURDIR)/bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run --allow-parallel-runners ./...
	go run ./tools/words

workflowcheck:
	@tools/workflowcheck/run

imports: ## no room reaches, however far, what it must not know
	@tools/imports

# The test harnesses send Unix signals, so they are left out on Windows.
cross: ## it compiles for macOS and Windows (a type check from source; nothing is built)
	@mkdir -p bin
	go build -C tools/crosscheck -o $(CURDIR)/bin/crosscheck .
	bin/crosscheck darwin/arm64 ./...
	bin/crosscheck windows/amd64 $$(go list ./... | grep -v -e /e2e -e /bench$$ -e /chaos$$ -e /differential$$)

cross-build: ## build it for macOS and Windows (10 minutes without a cache)
	GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/deployctl/deployctl-embedded
	GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/deployctl/deployctl-embedded

# lint has vetted everything already.
unit:
	$(WITH_PEERS) go test -vet=off -p 2 -parallel 4 -timeout 40m $(PKGS)
	go -C tools/fakeprovider test ./...
	go -C tools/crosscheck test ./...

MUTATED = $$(grep -rl --include=mutants_test.go mutanttest.Play . | xargs -n1 dirname)

mutants: ## the tests notice each way in which the code is broken on purpose
	go test -vet=off -count=1 -parallel 2 -timeout 20m -run TestMutantsAreCaught $(MUTATED) -args -mutants

# Two processes look for this long at each target. A protocol of several targets takes it in parts, so that each gets a minute.
FUZZTIME ?= 30s
FUZZPART ?= 4s
FUZZED = internal/pluginhost:FuzzEngine internal/pluginhost:FuzzProviderAnswers internal/pluginhost:FuzzLanguageHostAnswers
FUZZED_PARTS = activities:FuzzRegisterResource activities:FuzzReadResource activities:FuzzInvoke activities:FuzzCall \
	activities:FuzzRegisterResourceOutputs activities:FuzzRegisterPackage activities:FuzzStepsOverAnswers internal/gitpush:FuzzEvents \
	internal/pulumiapi:FuzzRequests internal/redaction:FuzzReplace internal/journal:FuzzReplay

fuzz: ## each protocol that programs and plugins speak, a minute of processor time; findings stay in testdata/fuzz
	tools/fuzz $(FUZZTIME) $(FUZZED)
	tools/fuzz $(FUZZPART) $(FUZZED_PARTS)

peers:
	@tools/peers/build >/dev/null

stockengine: # Pulumi's own engine, which differential compares with; it shares what it compiles with the stock CLI
	@tools/peers/build pulumi stockengine >/dev/null

# Two packages at a time, the longest first, and four tests of each: more only makes each of them slower.
e2e: build next stockengine
	$(WITH_PEERS) go test -vet=off -p 2 -parallel 4 -timeout 80m ./e2e ./e2e/attack ./e2e/languages ./chaos ./internal/devserver/... ./e2e/... ./differential

bench: build ## the table against the stock CLI
	$(WITH_PEERS) go run ./bench

chaos: build next ## show every claim of docs/durability.md; CLAIM=kills SEEDS=1-20 shows, or resumes, a part
	$(WITH_PEERS) go run ./chaos -claim '$(CLAIM)' -seeds '$(SEEDS)'

differential: build stockengine ## compare random programs with Pulumi's own engine; SEEDS=1-2000 plays, or resumes, these
	$(WITH_PEERS) go run ./differential $(if $(SEEDS),-seeds '$(SEEDS)') $(ARGS)

attack: build next ## play every attack of docs/security.md at full size
	$(WITH_PEERS) go test -p 1 -count=1 -timeout 1h ./e2e/attack -args -full
	$(WITH_PEERS) go test -count=1 -timeout 30m ./e2e/hostile
	$(WITH_PEERS) go test -count=1 -timeout 30m ./e2e/secrecy -args -full
	$(WITH_PEERS) go test -count=1 -timeout 30m -run 'AnotherUser|APayload' ./e2e
	tools/fuzz $(FUZZTIME) internal/grpcapi:FuzzCalls internal/token:FuzzTokens

ROUNDS ?= 20
rounds: build ## the walk and the kill tests, ROUNDS (20) times in a row
	@for round in $$(seq $(ROUNDS)); do $(WITH_PEERS) go test -p 1 -parallel 4 -failfast -count=1 -timeout 1h -run 'NewUser|Kill|NeverMadeTwice|Save|FirstStart|Survives|CtrlC|Cancel|ServiceThat|Terminated' ./e2e ./e2e/recovery || exit 1; echo "round $$round of $(ROUNDS) held"; done

record: build ## docs/killed-update.svg anew: a real update whose service is killed (needs tmux)
	peers=$$(tools/peers/build pulumi-language-yaml) && PATH="$(CURDIR)/bin:$$peers:$$PATH" \
		&& go run -C tools/record . $(CURDIR)/tools/record/project $(CURDIR)/docs/killed-update.svg

generate: ## the API's generated code
	go generate ./api/...

clean:
	rm -rf bin
