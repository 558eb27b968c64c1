package plugins

import (
	"maps"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// runtimes are the names of runtimes, and what else people write for them.
var runtimes = map[string]string{"yaml": "yaml", "yml": "yaml", "nodejs": "nodejs", "node": "nodejs", "js": "nodejs",
	"javascript": "nodejs", "typescript": "nodejs", "ts": "nodejs", "bun": "bun", "go": "go", "golang": "go",
	"python": "python", "python3": "python", "py": "python", "dotnet": "dotnet", "csharp": "dotnet", "c#": "dotnet",
	"java": "java", "jvm": "java", "pcl": "pcl", "hcl": "hcl"}

// MeantRuntime returns the runtime that a name means which is none; "" if it is like none, or is one.
func MeantRuntime(name string) string {
	const most = 2 // letters that differ, such as two that are swapped
	if meant := runtimes[strings.ToLower(name)]; meant == name {
		return ""
	} else if meant != "" {
		return meant
	}
	best, least := "", most+1
	for _, word := range slices.Sorted(maps.Keys(runtimes)) {
		if d := levenshtein.Distance(name, word, nil); d < least && d < len(word)-1 {
			best, least = runtimes[word], d
		}
	}
	return best
}
