package worker

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/jobs/deployment"
	"github.com/deployctl/deployctl/internal/jobs/scheduled"
	"github.com/deployctl/deployctl/internal/jobs/webhooks"
	"github.com/deployctl/deployctl/recovery"
)

// registry collects the names of activities.
type registry struct {
	worker.ActivityRegistry
	names, former []string
}

func (r *registry) RegisterActivity(all any) {
	for m := range reflect.TypeOf(all).Methods() {
		r.names = append(r.names, m.Name)
	}
}

func (r *registry) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	r.former = append(r.former, o.Name)
}

// registered returns the names of all activities of a worker, and the former ones.
func registered() (names, former []string) {
	r := &registry{}
	for _, all := range []any{&activities.Activities{}, &recovery.Activities{}, &scheduled.Activities{},
		&deployment.Activities{}, &webhooks.Activities{}} {
		registerActivities(r, all)
	}
	slices.Sort(r.names)
	slices.Sort(r.former)
	return r.names, r.former
}

// verbs begin the names of activities.
var verbs = []string{"Add", "Analyze", "Ask", "Await", "Begin", "Claim", "Commit", "Compare", "Deliver", "End",
	"Follow", "Load", "Ping", "Plan", "Prepare", "Read", "Recover", "Refresh", "Remove", "Report", "Run", "Spill",
	"Submit", "Terminate"}

// lasting are the names that recovery by older builds reads in histories (docs/adr/0086).
var lasting = []string{deployments.ActivityStep, deployments.ActivitySettle, deployments.ActivitySave}

func TestTheNameOfAnActivityIsAVerbAndAnObject(t *testing.T) {
	verbAndObject := regexp.MustCompile(`^(` + strings.Join(verbs, "|") + `)[A-Z]\w+$`)
	names, _ := registered()
	for _, name := range names {
		if !verbAndObject.MatchString(name) && !slices.Contains(lasting, name) {
			t.Errorf("%s does not say what is done with what: an operator reads it in Temporal's Web UI", name)
		}
	}
}

func TestThePageHasEveryActivityWithWhatItDoes(t *testing.T) {
	page, err := os.ReadFile("../docs/temporal.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| activity | of | what it does |\n")
	var described []string
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| [A-Z][\\w, ]+ \\| \\S.* \\|$")
	for _, row := range rows.FindAllStringSubmatch(table, -1) {
		described = append(described, row[1])
	}
	slices.Sort(described)
	if names, _ := registered(); !slices.Equal(described, names) {
		t.Errorf("docs/temporal.md describes %v\nand registered are %v", described, names)
	}
}

func TestAWorkerKnowsActivitiesByTheirFormerNames(t *testing.T) {
	names, former := registered()
	var want []string
	for _, name := range names {
		if then := deployments.FormerName(name); then != name {
			want = append(want, then)
			if deployments.PresentName(then) != name || slices.Contains(names, then) {
				t.Errorf("%s was called %s, which is not known again", name, then)
			}
		}
	}
	slices.Sort(want)
	if len(want) < 20 || !slices.Equal(former, want) {
		t.Errorf("registered are %v, and the former names are %v", former, want)
	}
	for _, name := range lasting {
		if deployments.FormerName(name) != name {
			t.Errorf("%s has another name than before: recovery by an older build does not find it", name)
		}
	}
}
