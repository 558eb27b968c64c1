package valuediff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OneLine writes a value as JSON on one line.
func OneLine(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return fmt.Sprintf("%q", fmt.Sprint(value))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// worth is how many characters a count takes: fewer are not cut.
const worth = 24

// Cut shortens a text to about max characters, and counts what is cut.
func Cut(text string, max int) string {
	runes := []rune(text)
	if len(runes) <= max+worth {
		return text
	}
	return string(runes[:max]) + cut(len(runes)-max)
}

func cut(n int) string { return fmt.Sprintf("…(%d characters)…", n) }

// lineWidth is up to how many characters a value stands on one line of a block.
const lineWidth = 72

// Block writes a whole value, as lines: what is short on one line, objects and lists an entry a line, texts of several
// lines as they are, JSON and YAML in texts by what they hold. The first line continues the line that names the value.
func Block(value any) []string { return blockAt(value, 0) }

func blockAt(value any, depth int) []string {
	if depth > maxDepth {
		return []string{OneLine(value)}
	}
	switch v := value.(type) {
	case string:
		return textBlock(v, depth)
	case map[string]any:
		if one := OneLine(v); len(one) <= lineWidth || len(v) == 0 {
			return []string{one}
		}
		out := []string{""}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, entry(Join("", key)+":", blockAt(v[key], depth+1))...)
		}
		return out
	case []any:
		if one := OneLine(v); len(one) <= lineWidth || len(v) == 0 {
			return []string{one}
		}
		out := []string{""}
		for i, item := range v {
			out = append(out, entry(index("", i)+":", blockAt(item, depth+1))...)
		}
		return out
	}
	return []string{OneLine(value)}
}

// entry puts a name before a block that is indented below it.
func entry(name string, block []string) []string {
	out := []string{strings.TrimRight("  "+name+" "+block[0], " ")}
	for _, line := range block[1:] {
		out = append(out, "  "+line)
	}
	return out
}

func textBlock(text string, depth int) []string {
	if len(text) > lineWidth || multiline(text) {
		if format, value, _ := read(text, text); format != "" {
			inner := blockAt(value, depth+1)
			inner[0] = strings.TrimSpace("(" + format + ") " + inner[0])
			return inner
		}
	}
	if !multiline(text) {
		return []string{OneLine(text)}
	}
	out := []string{"|"}
	for _, line := range splitLines(text) {
		out = append(out, "  "+line)
	}
	return out
}
