package docs

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A package of the product has no more files and lines than a newcomer reads at once.
const mostFiles, mostLines = 30, 4000

// large are the packages of the product that have more, what they may have at most, and why.
var large = map[string]struct {
	files, lines int
	why          string
}{
	"engine":                     {55, 8_900, "one state machine: each part of it reads the states of the others"},
	"statestore":                 {40, 7_000, "heads, claims, checkpoints and states share one chain of objects"},
	"deployments":                {39, 6_000, "the contract, which all rooms share: types and limits, and little code"},
	"workflows":                  {34, 4_500, "seven workflows, with the timeouts and retries that they share"},
	"internal/service":           {36, 5_500, "a file for each subject of the API, over one service"},
	"internal/edge/grpcapi":      {37, 5_000, "a file for each subject of the API, in the order of the .proto files"},
	"internal/edge/pulumiapi":    {27, 5_000, "a file for each subject of the Pulumi Service API"},
	"internal/plugin/pluginhost": {30, 4_500, "the processes of plugins, and the guards around each call of one"},
}

// sized reports whether a package is a part of the product that people read.
func sized(dir string) bool {
	top, _, _ := strings.Cut(dir, "/")
	switch top {
	case "api", "docs", "e2e", "examples", "tools":
		return false
	}
	return !strings.HasPrefix(dir, "internal/testkit") && !strings.HasSuffix(dir, "test")
}

func TestNoPackageIsTooLargeToBeRead(t *testing.T) {
	files, lines := map[string]int{}, map[string]int{}
	for _, file := range goFiles(t) {
		if dir := path.Dir(file); sized(dir) {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			files[dir]++
			lines[dir] += bytes.Count(text, []byte("\n"))
		}
	}
	for dir := range files {
		most, known := large[dir]
		over := files[dir] > mostFiles || lines[dir] > mostLines
		switch {
		case over && !known:
			t.Errorf("%s has %d files and %d lines: take a room out of it", dir, files[dir], lines[dir])
		case over && (files[dir] > most.files || lines[dir] > most.lines):
			t.Errorf("%s has grown to %d files and %d lines: take a room out of it", dir, files[dir], lines[dir])
		case !over && known:
			t.Errorf("%s has only %d files and %d lines: it may leave the table", dir, files[dir], lines[dir])
		}
	}
	for dir := range large {
		if files[dir] == 0 {
			t.Errorf("there is no %s: it may leave the table", dir)
		}
	}
}
