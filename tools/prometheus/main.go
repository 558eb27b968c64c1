// Prometheus examines what deploy has for Prometheus and Grafana: every metric and label that an alert or a panel uses
// is one that docs/observability.md lists. A test of internal/service/metrics compares that list with the code.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prometheus ROOT")
		os.Exit(2)
	}
	faults, err := examine(os.Args[1])
	if err != nil {
		faults = append(faults, err.Error())
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// examine returns what is wrong with the rules and dashboards of the tree at root.
func examine(root string) (faults []string, err error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "observability.md"))
	if err != nil {
		return nil, err
	}
	known, err := listed(string(page))
	if err != nil {
		return nil, err
	}
	uses, err := rules(filepath.Join(root, "deploy", "prometheus", "alerts.yml"))
	if err != nil {
		return nil, err
	}
	dashboards, err := filepath.Glob(filepath.Join(root, "deploy", "grafana", "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range dashboards {
		more, wrong, err := dashboard(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		uses, faults = append(uses, more...), append(faults, wrong...)
	}
	for _, u := range uses {
		faults = append(faults, u.faults(known)...)
	}
	if len(dashboards) == 0 || len(uses) < 30 {
		faults = append(faults, fmt.Sprintf("only %d dashboards with %d expressions were found", len(dashboards), len(uses)))
	}
	return faults, nil
}
