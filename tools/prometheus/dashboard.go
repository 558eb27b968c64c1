package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// board is what is examined of a dashboard of Grafana.
type board struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

var labelValues = regexp.MustCompile(`^label_values\((.+), *([a-z_]+)\)$`)

// dashboard reads the expressions of a dashboard, and what is wrong with its layout.
func dashboard(file string) (uses []use, faults []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, nil, err
	}
	variables := map[string]bool{}
	for _, v := range b.Templating.List {
		variables[v.Name] = true
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			uses = append(uses, use{where: "variable " + v.Name, expr: "max by (" + m[2] + ") (" + m[1] + ")"})
		}
	}
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if other, taken := ids[p.ID]; taken {
			faults = append(faults, fmt.Sprintf("panels %q and %q have the id %d", other, p.Title, p.ID))
		}
		ids[p.ID] = p.Title
		faults = append(faults, p.overlaps(cells)...)
		for _, t := range p.Targets {
			expr, unknown := inserted(t.Expr, variables)
			for _, name := range unknown {
				faults = append(faults, fmt.Sprintf("panel %q uses the variable %s, which there is not", p.Title, name))
			}
			uses = append(uses, use{where: "panel " + p.Title, expr: expr, templates: []string{t.LegendFormat}})
		}
	}
	return uses, faults, nil
}

// overlaps takes the cells of a panel, of a grid of 24 columns.
func (p panel) overlaps(cells map[[2]int]string) (faults []string) {
	at := p.GridPos
	if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
		return []string{fmt.Sprintf("panel %q is not within the 24 columns", p.Title)}
	}
	for x := at.X; x < at.X+at.W; x++ {
		for y := at.Y; y < at.Y+at.H; y++ {
			if other, taken := cells[[2]int{x, y}]; taken {
				return []string{fmt.Sprintf("panels %q and %q overlap", other, p.Title)}
			}
			cells[[2]int{x, y}] = p.Title
		}
	}
	return nil
}

var variable = regexp.MustCompile(`\$(\w+)`)

// inserted replaces the variables of Grafana in an expression, and names those that there are not.
func inserted(expr string, variables map[string]bool) (whole string, unknown []string) {
	whole = variable.ReplaceAllStringFunc(expr, func(v string) string {
		name := strings.TrimPrefix(v, "$")
		switch {
		case name == "__rate_interval":
			return "5m"
		case !variables[name]:
			unknown = append(unknown, name)
		}
		return ".*"
	})
	return whole, unknown
}
