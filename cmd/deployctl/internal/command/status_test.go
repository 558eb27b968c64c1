package command

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// columns are the cells of the line of a table that begins with a name.
func columns(t *testing.T, table, name string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if cells := strings.Fields(line); len(cells) > 0 && cells[0] == name {
			return strings.Join(cells, " ")
		}
	}
	t.Fatalf("there is no %s in\n%s", name, table)
	return ""
}

func TestTheStatusOfAllStacksIsShownWithoutAProject(t *testing.T) {
	d := busy(t)
	idle := deployments.StackName{Organization: "acme", Project: "shop", Stack: "idle"}
	if err := d.service.CreateStack(t.Context(), idle, nil); err != nil {
		t.Fatal(err)
	}
	paused := deployments.Schedule{Name: deployments.ScheduleName{StackName: idle, Name: "drift"}, Kind: "drift",
		Every: time.Hour, Paused: true, Note: "paused by ann"}
	if err := d.service.CreateSchedule(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	d.service.Drifted = map[deployments.StackName]deployments.Drift{idle: {At: time.Now(),
		Resources: make([]deployments.DriftedResource, 3)}}
	got := d.must("status")
	const sick = "acme/shop/idle 0 never 3 schedule drift is paused: paused by ann"
	if line := columns(t, got, "acme/shop/idle"); line != sick {
		t.Errorf("it is %q", line)
	}
	if line := columns(t, got, "initech/blog/live"); line != "initech/blog/live 0 never destroy" {
		t.Errorf("it is %q", line)
	}
	if got := d.must("status", "--problems"); strings.Contains(got, "initech") ||
		!strings.Contains(got, "acme/shop/idle") {
		t.Errorf("the problems are\n%s", got)
	}
	if got := d.must("status", "--organization", "initech", "--json"); strings.Contains(got, "acme") ||
		!strings.Contains(got, `"stack": {`) {
		t.Errorf("of one organization it is\n%s", got)
	}
}

func TestTheStatusOfMoreStacksThanAPageHasIsWhole(t *testing.T) {
	d := newDesk(t, nil)
	for i := range deployments.MostStatuses + 3 {
		name := deployments.StackName{Organization: "acme", Project: "shop", Stack: fmt.Sprintf("s%03d", i)}
		if err := d.service.CreateStack(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(d.must("status"), "acme/shop/s"); got != deployments.MostStatuses+3 {
		t.Errorf("it has %d stacks", got)
	}
}

func TestTheListOfAProjectsStacksHasTheirLastResults(t *testing.T) {
	d := inProject(t)
	d.must("up", "--yes")
	got := strings.Fields(columns(t, d.must("stack", "ls"), "dev*"))
	if len(got) != 7 || got[1] != "1" || got[5] != "up" || got[6] != "succeeded" {
		t.Errorf("it is %q", got)
	}
}

func TestAStatusIsShownUntilAnInterrupt(t *testing.T) {
	d, ended := busy(t), make(chan int, 1)
	signals := make(chan os.Signal, 1)
	d.signals = signals
	var out, errs syncBuffer
	go func() {
		ended <- Main(context.Background(), d.env(&out, &errs), []string{"deployctl", "status", "--watch"})
	}()
	out.shows(t, "initech/blog/live")
	signals <- os.Interrupt
	if code := <-ended; code != 0 {
		t.Errorf("it ends with %d:\n%s%s", code, out.String(), errs.String())
	}
}
