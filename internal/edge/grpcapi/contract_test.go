package grpcapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// The parts of deployments.Service.
var serviceInterfaces = []string{"Service", "Stacks", "Bundles", "Tokens", "Members", "Teams", "Trusts", "Schedules",
	"Webhooks", "Profiles", "Auditing", "Modes", "Quotas"}

var (
	neededRole = regexp.MustCompile(`Needs Role(\w+)(?:, or Role(\w+) with \w+)?( on both names)?\.`)
	namedCode  = regexp.MustCompile(`\bCode[A-Z]\w*`)
)

// TestEachMethodOfTheServiceSaysWhoMayCallItAndHowItFails compares the doc comments of deployments.Service with the
// table of rules and the declared codes.
func TestEachMethodOfTheServiceSaysWhoMayCallItAndHowItFails(t *testing.T) {
	methods, codes := contract(t)
	for name, rule := range rules {
		if rule.scope == open {
			continue
		}
		method := name[strings.LastIndexByte(name, '/')+1:]
		doc, ok := "", false
		for _, prefix := range []string{"", "Get", "List", "Read"} {
			if named, found := strings.CutPrefix(method, prefix); found && methods[named] != "" {
				doc, ok = methods[named], true
				delete(methods, named)
				break
			}
		}
		if !ok {
			t.Errorf("no method of deployments.Service that has a comment is called as %s", method)
			continue
		}
		to := deployments.Role("")
		if rule.raised != "" {
			to = rule.to
		}
		if said := neededRole.FindStringSubmatch(doc); said == nil ||
			!strings.EqualFold(said[1], string(rule.role)) || !strings.EqualFold(said[2], string(to)) {
			t.Errorf("the comment of %s does not say that it needs the role %s%s:\n%s", method, rule.role, to, doc)
		}
		named := namedCode.FindAllString(doc, -1)
		if len(named) == 0 && !strings.Contains(doc, "Fails as every method does.") {
			t.Errorf("the comment of %s does not say with which codes it fails:\n%s", method, doc)
		}
		for _, code := range named {
			if !codes[code] {
				t.Errorf("the comment of %s names %s, which is no code", method, code)
			}
		}
	}
	for method := range methods {
		t.Errorf("no rule of the API is for %s", method)
	}
}

// contract returns the comments of the service's methods, one line each, by name, and the codes that there are.
func contract(t *testing.T) (methods map[string]string, codes map[string]bool) {
	t.Helper()
	methods, codes = map[string]string{}, map[string]bool{}
	for _, name := range []string{"service.go", "people.go", "schedules.go", "webhooks.go", "profiles.go", "mode.go",
		"quota.go", "errors.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../../../deployments/"+name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, ident := range n.Names {
					codes[ident.Name] = true
				}
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok && slices.Contains(serviceInterfaces, n.Name.Name) {
					addMethods(methods, i)
				}
			}
			return true
		})
	}
	return methods, codes
}

// addMethods adds a line " " for a method without a comment, so that it is missed.
func addMethods(methods map[string]string, i *ast.InterfaceType) {
	for _, field := range i.Methods.List {
		for _, ident := range field.Names {
			methods[ident.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ") + " "
		}
	}
}
