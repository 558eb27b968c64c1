package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// keep writes a program, what both engines did and said in one of its updates, and the states that they ended with.
func (a *arena) keep(p program, update int, sides []*side) error {
	if a.states == "" {
		return nil
	}
	if err := os.MkdirAll(a.states, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(a.states, fmt.Sprint(p.Seed, ".txt")), []byte(p.text()), 0o600); err != nil {
		return err
	}
	for i, engine := range []string{"ours", "stock"} {
		s := sides[i]
		text, err := json.MarshalIndent(map[string]any{
			"failed": s.failed, "steps": s.steps, "errors": s.errors, "state": s.state, "objects": s.objects,
		}, "", "  ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d-%d-%s.json", p.Seed, update, engine)
		if err := os.WriteFile(filepath.Join(a.states, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
