package command

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Each of these changes something that another command may change at the same time: ten at once are all there.
func TestTenCommandsAtOnceLoseNothing(t *testing.T) {
	for name, c := range map[string]struct {
		shows string
		run   func(i string) []string
	}{
		"tags":    {"stack tag ls", func(i string) []string { return []string{"stack", "tag", "set", "key" + i, i} }},
		"values":  {"config", func(i string) []string { return []string{"config", "set", "key" + i, i} }},
		"secrets": {"config", func(i string) []string { return []string{"config", "set", "--secret", "key" + i, i} }},
		"many values": {"config", func(i string) []string {
			return []string{"config", "set-all", "--plaintext", "key" + i + "=1"}
		}},
		"--config":     {"config", func(i string) []string { return []string{"preview", "--config", "key" + i + "=1"} }},
		"a path":       {"config", func(i string) []string { return []string{"config", "set", "--path", "map.key" + i, i} }},
		"other stacks": {"stack ls", func(i string) []string { return []string{"stack", "init", "key" + i, "--no-select"} }},
	} {
		t.Run(name, func(t *testing.T) {
			d := inProject(t)
			d.service.Play = creating
			var group sync.WaitGroup
			for i := range 10 {
				group.Go(func() {
					o := d.run(c.run(strconv.Itoa(i))...)
					uploaded := strings.Contains(o.err, "changed while it was being uploaded") // but the value is kept
					if o.code != 0 && !uploaded {
						t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
					}
				})
			}
			group.Wait()
			shown := d.must(strings.Fields(c.shows)...)
			for i := range 10 {
				if !strings.Contains(shown, "key"+strconv.Itoa(i)) {
					t.Errorf("the one of %d is lost:\n%s", i, shown)
				}
			}
		})
	}
}
