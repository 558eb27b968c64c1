package catalogue

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/deployctl/deployctl/internal/values/rawjson"
)

const (
	// mappingKey asks a bridged plugin for the names of Terraform's types.
	mappingKey = "terraform"
	// largestMapping bounds what is read of the answer, which has the schema of the provider, too.
	largestMapping = 64 << 20
	// longestName bounds a name in it, as it is written.
	longestName = 500
)

// names are what a plugin calls what Terraform names. The zero value is none: the catalogue's own names hold.
type names struct {
	types     map[string]string            // Terraform's names by token
	fields    map[string]map[string]string // of inputs, by types and Terraform's names
	functions map[string]string            // tokens by Terraform's names
}

func (n names) bound() bool { return n.types != nil }

// tokens replaces the tokens of functions in a text of the catalogue by the plugin's own.
func (n names) tokens(f *file, text string) string {
	if !n.bound() {
		return text
	}
	for tf, token := range f.Functions {
		if own := n.functions[tf]; own != "" && strings.Contains(text, token) {
			text = strings.ReplaceAll(text, quoted(token), quoted(own))
		}
	}
	return text
}

func quoted(text string) string {
	data, _ := json.Marshal(text) // a text is always JSON
	return string(data)
}

// parseMapping reads a plugin's answer: of its types and functions, those that the catalogue has.
func (f *file) parseMapping(data []byte) names {
	n := names{types: map[string]string{}, fields: map[string]map[string]string{}, functions: map[string]string{}}
	if len(data) > largestMapping || !json.Valid(data) {
		return n
	}
	for section, members := range rawjson.Members(data) {
		if section != "resources" && section != "dataSources" {
			continue
		}
		for tf, info := range rawjson.Members(members) {
			token := text(rawjson.Member(info, "tok"))
			if token == "" {
				continue
			}
			if section == "dataSources" {
				if f.Functions[tf] != "" {
					n.functions[tf] = token
				}
				continue
			}
			if rules, ok := f.types[tf]; ok && n.types[token] == "" {
				n.types[token], n.fields[tf] = tf, fieldNames(rawjson.Member(info, "fields"), rules)
			}
		}
	}
	return n
}

// fieldNames returns the inputs that have a name of their own, of those that the rules of a type name. A plugin may
// tell of any number of others.
func fieldNames(fields []byte, rules string) map[string]string {
	all := map[string]string{}
	named := map[string]bool{}
	for word := range strings.FieldsFuncSeq(rules, func(c rune) bool {
		return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) {
		named[word] = true
	}
	for name, info := range rawjson.Members(fields) {
		if !named[name] {
			continue
		}
		if own := text(rawjson.Member(info, "name")); own != "" {
			all[name] = own
		}
	}
	return all
}

// text returns the text of a value; empty if it is none, or too long.
func text(value []byte) string {
	var s string
	if len(value) == 0 || len(value) > longestName || json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
