package devserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Left is a stack in the bucket of a home.
type Left struct {
	Stack     string // ORG/PROJECT/STACK
	Resources int
}

// Stacks lists the stacks of a home whose service is stopped, sorted by name: from the files of its bucket, where heads
// of stacks are readable. What cannot be read is left out.
func Stacks(path string) ([]Left, error) {
	h, err := findHome(path)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(h.objects(), Bucket, "stacks")
	heads, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "head.json"))
	if err != nil {
		return nil, err
	}
	var stacks []Left
	for _, file := range heads {
		text, err := os.ReadFile(file)
		var head struct {
			Resources int `json:"resources"`
		}
		if err != nil || json.Unmarshal(text, &head) != nil {
			continue
		}
		name, err := filepath.Rel(root, filepath.Dir(file))
		if err == nil {
			stacks = append(stacks, Left{filepath.ToSlash(name), head.Resources})
		}
	}
	slices.SortFunc(stacks, func(a, b Left) int { return strings.Compare(a.Stack, b.Stack) })
	return stacks, nil
}
