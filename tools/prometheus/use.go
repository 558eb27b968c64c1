package main

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// use is an expression, and the text that names labels of its result.
type use struct {
	where, expr string
	templates   []string // {{ $labels.NAME }} of alerts, {{NAME}} of legends
}

// control are actions of templates that name no label.
var control = regexp.MustCompile(`\{\{ *(else|end) *\}\}`)

var mentioned = regexp.MustCompile(`\$labels\.([a-z_]+)|\{\{ *([a-z_]+) *\}\}`)

// faults returns what an expression uses that there is not.
func (u use) faults(known metrics) (faults []string) {
	wrong := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: %s: in %s", u.where, fmt.Sprintf(format, args...), u.expr))
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(u.expr)
	if err != nil {
		wrong("%v", err)
		return faults
	}
	var read []string // labels of all metrics of the expression
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, ok := known[selector.Name]
		if !ok {
			wrong("there is no metric %q", selector.Name)
			return nil
		}
		read = append(read, has...)
		for _, m := range selector.LabelMatchers {
			if m.Name != labels.MetricName && !slices.Contains(has, m.Name) {
				wrong("%s has no label %s, but %s", selector.Name, m.Name, allowed(has))
			}
		}
		return nil
	})
	if len(faults) > 0 {
		return faults
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		for _, label := range grouping(node) {
			if !slices.Contains(read, label) {
				wrong("nothing in it has the label %s", label)
			}
		}
		return nil
	})
	left := result(expr, known)
	for _, text := range u.templates {
		text = control.ReplaceAllString(text, "")
		for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
			if label := m[1] + m[2]; !slices.Contains(left, label) {
				wrong("its result has no label %s, but %s", label, allowed(left))
			}
		}
	}
	return faults
}

// grouping are the labels by which a part of an expression groups or matches.
func grouping(node parser.Node) []string {
	switch n := node.(type) {
	case *parser.AggregateExpr:
		return n.Grouping
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			return slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
		}
	}
	return nil
}

// result are the labels that the result of an expression may have.
func result(node parser.Node, known metrics) (left []string) {
	switch n := node.(type) {
	case *parser.VectorSelector:
		return known[n.Name]
	case *parser.AggregateExpr:
		if n.Op == parser.TOPK || n.Op == parser.BOTTOMK {
			return result(n.Expr, known)
		}
		if n.Without {
			return slices.DeleteFunc(slices.Clone(result(n.Expr, known)), func(l string) bool {
				return slices.Contains(n.Grouping, l)
			})
		}
		return n.Grouping
	case *parser.BinaryExpr:
		left = result(n.LHS, known)
		if n.Op == parser.LOR || len(left) == 0 {
			left = slices.Concat(left, result(n.RHS, known))
		}
		return left
	}
	for child := range parser.ChildrenIter(node) {
		left = append(left, result(child, known)...)
	}
	return left
}

// rules reads the expressions of a file of alerts, which Prometheus itself parses.
func rules(file string) (uses []use, err error) {
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.Default())
	if len(errs) > 0 {
		return nil, errs[0]
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			u := use{where: r.Alert, expr: r.Expr}
			for _, text := range r.Annotations {
				u.templates = append(u.templates, text)
			}
			uses = append(uses, u)
		}
	}
	return uses, nil
}
