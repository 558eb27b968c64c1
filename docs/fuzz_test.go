package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

func TestMakePlaysEveryFuzzTarget(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, word := range strings.Fields(string(makefile)) {
		listed[word] = true
	}
	found := 0
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		for _, target := range fuzzTarget.FindAllStringSubmatch(string(text), -1) {
			found++
			if at := path.Dir(name) + ":" + target[1]; !listed[at] {
				t.Errorf("the Makefile does not list %s among FUZZED or FUZZED_PARTS", at)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d targets are found: %v", found, err)
	}
}

// reads finds calls that read a text or bytes of others.
var reads = regexp.MustCompile(`\b(json|yaml|toml|proto|protojson)\.(Unmarshal|NewDecoder)\b|\bregexp\.Compile\(|` +
	`\b(gob\.NewDecoder|csv\.NewReader|zip\.NewReader|zip\.OpenReader|tar\.NewReader|zstd\.NewReader|gzip\.NewReader)\b|` +
	`\b(semver|cron|url|ssh)\.Parse|\bUnmarshalProperties\b|\bglob\.(Text|Path)\(|\bParsePropertyPath\(|\bjsonschema\.New`)

// trusted says why a package that has parsers needs no fuzz target: whose texts it reads. Those of the client and of
// the processes in a sandbox are their own user's.
var trusted = map[string]string{
	"client":                                 "its service's answers",
	"cmd/deployctl/internal/app":             "settings",
	"cmd/deployctl/internal/command/console": "files and answers of its user",
	"cmd/deployctl/internal/command/stack":   "files and answers of its user",
	"cmd/deployctl/internal/command/state":   "files and answers of its user",
	"cmd/deployctl/internal/command/update":  "files and answers of its user",
	"internal/terminal/importfile":           "a file of the client's user",
	"internal/project":                       "files of the client's user",
	"internal/events/projection":             "events, on the client",
	"internal/terminal/templates":            "files of the client's user",
	"internal/terminal/settings":             "settings",
	"internal/sys/tracing":                   "settings; a caller's place is parsed by OpenTelemetry's library",
	"cmd/deployctl/internal/kms":             "settings",
	"internal/devserver":                     "files of the home",
	"internal/sandbox":                       "files of the worker, and its launcher's answers",
	"internal/sandbox/launcher":              "the worker's order",
	"internal/values/pack":                   "what the service has sealed",
	"internal/values/workload":               "settings",
	"statestore/access":                      "what the service has sealed",
	"statestore/bucket":                      "what the service has sealed or has given a MAC",
	"statestore/creates":                     "what the service has sealed",
	"statestore/keys":                        "what the service has wrapped",
	"statestore/programs":                    "what the service has sealed",
	"statestore/stackobjects":                "what the service has sealed",
	"statestore/updates":                     "what the service has sealed",
	"internal/events/eventlog":               "what the service has sealed",
	"internal/host/assets/digest":            "in the sandbox of the program",
	"internal/sandbox/remote":                "in the sandbox of the program",
	"internal/jobs/gitsource":                "in the sandbox of the program",
	"internal/plugin/languagehost":           "in the sandbox of the program",
	"provider":                               "in the sandbox of the program",
	"providers":                              "in the sandbox of the program",
	"providers/s3":                           "in the sandbox of the program",
	"providers/http":                         "in the sandbox of the program",
	"providers/temporal":                     "in the sandbox of the program",
}

// targets name the fuzz targets of other packages by which the parsers of a package are reached.
var targets = map[string][]string{
	"internal/values/bags":       {"statestore:FuzzDeployments", "activities:FuzzRegisterResource"},
	"internal/edge/grpcapi/wire": {"internal/edge/grpcapi:FuzzCalls"},
	"internal/host/monitor":      {"activities:FuzzRegisterResource", "activities:FuzzInvoke", "activities:FuzzCall"},
	"internal/values/properties": {"activities:FuzzRegisterResource"},
	"internal/host/stackconfig":  {"internal/host/autonaming:FuzzPatterns"},
	"internal/host/compare":      {"activities:FuzzStepsOverAnswers"},
	"internal/service/identity":  {"internal/service/identity:FuzzIssuers", "deployments:FuzzClaims"},
}

// TestEveryParserOfStrangersTextsIsFuzzed holds that a package that reads what others have written has a target that
// reads anything, or a reason.
func TestEveryParserOfStrangersTextsIsFuzzed(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(makefile))
	parsing := map[string]bool{}
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			strings.HasSuffix(d.Name(), "test") || slices.Contains(
			[]string{"tools", "e2e", "internal/testkit/scenario", "examples", "api", "bin"}, name)):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		parsing[path.Dir(name)] = parsing[path.Dir(name)] || reads.Match(text)
		return err
	})
	if err != nil || len(parsing) == 0 {
		t.Fatalf("%d packages: %v", len(parsing), err)
	}
	for pkg, parses := range parsing {
		own := slices.ContainsFunc(listed, func(word string) bool { return strings.HasPrefix(word, pkg+":Fuzz") })
		elsewhere, named := targets[pkg]
		for _, target := range elsewhere {
			if !slices.Contains(listed, target) {
				t.Errorf("%s is said to be fuzzed by %s, which the Makefile does not list", pkg, target)
			}
		}
		switch why, told := trusted[pkg]; {
		case !parses && (named || told):
			t.Errorf("%s has no parser: take it out of the tables", pkg)
		case parses && !own && !named && !told:
			t.Errorf("%s parses: give it a fuzz target, or say in this test why it needs none", pkg)
		case told && (own || named):
			t.Errorf("%s is fuzzed, although it reads %s", pkg, why)
		}
	}
}
