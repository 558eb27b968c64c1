package project

import (
	"maps"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
	"gopkg.in/yaml.v3"
)

// checkBytes refuses bytes that are no UTF-8 where nothing says so later: in the text of a JSON file, and in lists and
// objects of a YAML file, as !!binary. Such a value becomes JSON, which would have U+FFFD in their place, in the
// program and in the file that is saved next. A stack's single value keeps its bytes until Values refuses it; with
// alone, it is refused here, too.
func checkBytes(path string, text []byte, alone bool) error {
	if filepath.Ext(path) == ".json" {
		return deployments.CheckUTF8(path, text)
	}
	var file struct {
		Config map[string]yaml.Node `yaml:"config"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil //nolint:nilerr // LoadProject or LoadProjectStackBytes says what is wrong
	}
	for _, key := range slices.Sorted(maps.Keys(file.Config)) {
		value := file.Config[key]
		if value.Kind == yaml.AliasNode {
			value = *value.Alias
		}
		if line := lineOfBytes([]*yaml.Node{&value}); line > 0 && (alone || value.Kind != yaml.ScalarNode) {
			return deployments.Errorf(deployments.CodeInvalid, "%s, line %d: the value of %s has bytes that are not "+
				"UTF-8 (!!binary); write them as base64, without !!binary, and decode them in the program", path, line,
				key)
		}
	}
	return nil
}

// lineOfBytes returns the line of the first bytes that are no UTF-8; 0 if there are none.
func lineOfBytes(nodes []*yaml.Node) int {
	for _, node := range nodes {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		var text string
		if node.ShortTag() == "!!binary" && node.Decode(&text) == nil && !utf8.ValidString(text) {
			return node.Line
		}
		if line := lineOfBytes(node.Content); line > 0 {
			return line
		}
	}
	return 0
}
