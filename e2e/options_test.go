package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"go.temporal.io/api/enums/v1"
)

// scene is a stack whose first program has run, and what its cloud did for that is not looked at.
type scene struct {
	*stage
	seen int // effects before
}

// steps makes a program of them, each a line of YAML without its dash.
func steps(lines ...string) string {
	return "packages: [{name: fake, version: 0.1.0}]\nsteps:\n  - " + strings.Join(lines, "\n  - ") + "\n"
}

func newScene(t *testing.T, program string) *scene {
	t.Helper()
	s := &scene{stage: newStage(t, sharedHome(t))}
	s.write(t, "scenario.yaml", program)
	s.update(t, "up")
	s.seen = s.effects(t)
	return s
}

// done is what the cloud did since the scene began, as "OP NAME", in its order.
func (s *scene) done(t *testing.T) (ops []string) {
	t.Helper()
	log, err := s.cloud.Effects(t.Context(), s.seen)
	must(t, err)
	for _, e := range log {
		ops = append(ops, string(e.Op)+" "+e.Owner[strings.LastIndex(e.Owner, "::")+2:])
	}
	return ops
}

// does compares what the cloud did.
func (s *scene) does(t *testing.T, want ...string) {
	t.Helper()
	if got := s.done(t); !slices.Equal(got, want) {
		t.Errorf("the cloud's effects are %q, not %q", got, want)
	}
}

// urn is that of a Named.
func urn(t *testing.T, name string) string {
	return "urn:pulumi:dev::" + projectName(t) + "::fake:index:Named::" + name
}

// TestFlagsAndOptionsDoWhatTheySay runs a program, changes it, and runs a command that must have exactly these effects.
func TestFlagsAndOptionsDoWhatTheySay(t *testing.T) {
	const (
		a       = "{register: a, type: fake:index:Named, properties: {name: a}}"
		b       = "{register: b, type: fake:index:Named, properties: {name: b}}"
		biggerA = "{register: a, type: fake:index:Named, properties: {name: a, size: 2}}"
		biggerB = "{register: b, type: fake:index:Named, properties: {name: b, size: 2}}"
		linkedB = "{register: b, type: fake:index:Named, properties: {name: b, links: ['${a.arn}']}}"
	)
	for row, c := range []struct {
		name          string
		before, after []string // the program; without after it stays
		args          []string // the command's; a name before an @ becomes its URN
		changes       map[string]int
		effects       []string
	}{
		{"--target leaves the others alone", []string{a, b}, []string{biggerA, biggerB},
			[]string{"up", "--target", "a@"}, map[string]int{"update": 1, "same": 2}, []string{"update a"}},
		{"--target takes wildcards", []string{a, b}, []string{biggerA, b},
			[]string{"up", "--target", "**::a"}, map[string]int{"update": 1, "same": 2}, []string{"update a"}},
		{"--target-dependents takes along what depends on a target", []string{a, linkedB}, []string{a, linkedB},
			[]string{"destroy", "--target", "a@", "--target-dependents"}, map[string]int{"delete": 2},
			[]string{"delete b", "delete a"}},
		{"--exclude leaves a resource alone", []string{a, b}, []string{biggerA, biggerB},
			[]string{"up", "--exclude", "a@"}, map[string]int{"update": 1, "same": 2}, []string{"update b"}},
		{"--exclude keeps a resource from a destroy, and lets go what depends on it", []string{a, linkedB},
			[]string{a, linkedB}, []string{"destroy", "--exclude", "**::a"}, map[string]int{"delete": 1},
			[]string{"delete b"}},
		{"--exclude-dependents keeps what depends on it as well", []string{a, linkedB, "{register: c, type: " +
			"fake:index:Auto}"}, nil, []string{"destroy", "--exclude", "a@", "--exclude-dependents"},
			map[string]int{"delete": 1}, []string{"delete c"}},
		{"--exclude-protected destroys the rest",
			[]string{"{register: a, type: fake:index:Named, properties: {name: a}, options: {protect: true}}", b}, nil,
			[]string{"destroy", "--exclude-protected"}, map[string]int{"delete": 1}, []string{"delete b"}},
		{"--ignore-protect destroys what is protected",
			[]string{"{register: a, type: fake:index:Named, properties: {name: a}, options: {protect: true}}"}, nil,
			[]string{"destroy", "--ignore-protect"}, map[string]int{"delete": 2}, []string{"delete a"}},
		{"deletedWith replaces along, and only the first old one is deleted by a call",
			[]string{"{register: a, type: fake:index:Auto}", "{register: b, type: fake:index:Auto, options: " +
				"{deletedWith: a}}"},
			[]string{"{register: a, type: fake:index:Auto, properties: {zone: b}}",
				"{register: b, type: fake:index:Auto, options: {deletedWith: a}}"},
			[]string{"up", "--parallel", "1"}, map[string]int{"replace": 2, "same": 1},
			[]string{"create a", "create b", "delete a"}},
		{"--replace replaces what is as it should be", []string{"{register: a, type: fake:index:Auto}", b},
			[]string{"{register: a, type: fake:index:Auto}", b},
			[]string{"up", "--replace", "**::a"}, map[string]int{"replace": 1, "same": 2},
			[]string{"create a", "delete a"}},
		{"an alias renames without an effect", []string{a},
			[]string{"{register: z, type: fake:index:Named, properties: {name: a}, options: {aliases: [{name: a}]}}"},
			[]string{"up"}, map[string]int{"same": 2}, nil},
		{"replaceWith replaces along",
			[]string{"{register: a, type: fake:index:Auto}", "{register: b, type: fake:index:Auto, options: " +
				"{replaceWith: [a]}}"},
			[]string{"{register: a, type: fake:index:Auto, properties: {zone: b}}",
				"{register: b, type: fake:index:Auto, options: {replaceWith: [a]}}"},
			[]string{"up", "--parallel", "1"}, map[string]int{"replace": 2, "same": 1},
			[]string{"create a", "create b", "delete b", "delete a"}},
		{"deleteBeforeReplace takes dependents that would be replaced along",
			[]string{"{register: a, type: fake:index:Exclusive, properties: {name: a}}",
				"{register: b, type: fake:index:Auto, properties: {attachedTo: '${a.arn}'}}"},
			[]string{"{register: a, type: fake:index:Exclusive, properties: {name: a, zone: b}}",
				"{register: b, type: fake:index:Auto, properties: {attachedTo: '${a.arn}'}}"},
			[]string{"up"}, map[string]int{"replace": 2, "same": 1},
			[]string{"delete b", "delete a", "create a", "create b"}},
		{"a preview shows a replacement that deletes first",
			[]string{"{register: a, type: fake:index:Auto}"},
			[]string{"{register: a, type: fake:index:Auto, properties: {zone: b}, options: {deleteBeforeReplace: " +
				"true}}"},
			[]string{"preview"}, map[string]int{"replace": 1, "same": 1}, nil},
		{"the deleteBeforeReplace option puts the delete first",
			[]string{"{register: a, type: fake:index:Auto, options: {deleteBeforeReplace: true}}"},
			[]string{"{register: a, type: fake:index:Auto, properties: {zone: b}, options: {deleteBeforeReplace: " +
				"true}}"},
			[]string{"up"}, map[string]int{"replace": 1, "same": 1}, []string{"delete a", "create a"}},
		{"a custom timeout that is not reached changes nothing", []string{a},
			[]string{"{register: a, type: fake:index:Named, properties: {name: a, size: 2}, options: " +
				"{customTimeouts: {update: 5m}}}"},
			[]string{"up"}, map[string]int{"update": 1, "same": 1}, []string{"update a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			soaktest.ButFor(t, 8, row)
			t.Parallel()
			s := newScene(t, steps(c.before...))
			if c.after != nil {
				s.write(t, "scenario.yaml", steps(c.after...))
			}
			args := slices.Clone(c.args[1:])
			for i, arg := range args {
				if name, is := strings.CutSuffix(arg, "@"); is {
					args[i] = urn(t, name)
				}
			}
			s.update(t, c.args[0], args...).expect(t, c.changes)
			s.does(t, c.effects...)
		})
	}
}

func TestAProtectedResourceStays(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}, options: {protect: true}}"))
	s.write(t, "scenario.yaml", "steps: []\n")
	s.fails(t, 1, []string{"a is protected and cannot be deleted"}, "up", "--yes", "--skip-preview")
	s.fails(t, 1, []string{"a is protected and cannot be deleted"}, "destroy", "--yes", "--skip-preview")
	s.does(t)
	s.stateKnows(t)
}

func TestAnImportedResourceIsAdoptedAsItIs(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, "steps: []\n")
	must(t, s.cloud.Put(t.Context(), fakecloud.Object{Kind: "named", ID: "found", Name: "found",
		Properties: map[string]any{"size": 1, "zone": "a"}}))
	s.seen = s.effects(t)
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: found}, options: "+
		"{import: found}}"))
	s.update(t, "up").expect(t, map[string]int{"import": 1, "same": 1})
	s.does(t)
	s.update(t, "up").expect(t, map[string]int{"same": 2})
}

func TestAResourceThatDidNotInitialiseIsRepaired(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, "steps: []\n")
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a, failInit: true}}"))
	s.fails(t, 1, []string{"failInit is set"}, "up", "--yes", "--skip-preview")
	if a := s.exported(t).Resources; len(a) != 3 || len(a[2].InitErrors) != 2 {
		t.Errorf("the state is %+v", a)
	}
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	s.update(t, "up").expect(t, map[string]int{"update": 1, "same": 1})
	s.does(t, "create a", "update a")
}

func TestWhatCouldNotBeDeletedIsDeletedByTheNextUpdate(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Auto}"))
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{Name: "kept", Do: fakecloud.Fail, Op: fakecloud.Delete,
		Status: 409, Message: "it is in use"}))
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Auto, properties: {zone: b}}"))
	s.fails(t, 1, []string{"it is in use"}, "up", "--yes", "--skip-preview")
	if a := s.exported(t).Resources; len(a) != 4 || !a[3].Delete {
		t.Errorf("the state is %+v", a)
	}
	must(t, s.cloud.Lift(t.Context(), "kept"))
	s.update(t, "up")
	s.does(t, "create a", "delete a")
	s.stateAgrees(t)
}

// TestACustomTimeoutEndsACreate: the cloud never answers the first request, and nothing else would end it. The activity
// has a minute more than its provider.
func TestACustomTimeoutEndsACreate(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, "steps: []\n")
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{Name: "silent", Do: fakecloud.Hang, Op: fakecloud.Create,
		Times: 1}))
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}, options: "+
		"{customTimeouts: {create: 1s}}}"))
	got := s.update(t, "up")
	s.does(t, "create a")
	limits := map[time.Duration]bool{}
	history := s.dial(t).GetWorkflowHistory(t.Context(), "run/"+got.Update, "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		must(t, err)
		limits[event.GetActivityTaskScheduledEventAttributes().GetStartToCloseTimeout().AsDuration()] = true
	}
	if !limits[61*time.Second] {
		t.Errorf("the activities' limits are %v", limits)
	}
}

func TestRefreshComesBeforeTheUpdateWhereItIsAskedFor(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	found, err := s.cloud.Objects(t.Context(), "")
	must(t, err)
	found[0].Properties["size"] = 9
	must(t, s.cloud.Put(t.Context(), found[0]))
	s.seen = s.effects(t)
	s.update(t, "up").expect(t, map[string]int{"same": 2})
	s.does(t)
	s.update(t, "up", "--refresh")
	s.does(t, "update a")
}

func TestContinueOnErrorGoesOnWithWhatDoesNotDependOnIt(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}",
		"{register: b, type: fake:index:Named, properties: {name: b}}",
		"{register: c, type: fake:index:Named, properties: {name: c, links: ['${b.arn}']}}"))
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{Name: "kept", Do: fakecloud.Fail, Op: fakecloud.Delete,
		Object: "a", Status: 409, Message: "it is in use"}))
	s.fails(t, 1, []string{"it is in use"}, "destroy", "--yes", "--skip-preview", "--parallel", "1",
		"--continue-on-error")
	s.does(t, "delete c", "delete b")
	s.stateKnows(t)
}

func TestSupersedeTakesThePlaceOfThoseThatWait(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, "steps: []\n")
	gate := s.gate(t, "a", fakecloud.Before)
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	first := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	second := s.start(t, "up", "--yes", "--skip-preview")
	second.says(t, "waiting for update 2 of ")
	if history := s.must(t, "stack", "history"); !regexp.MustCompile(
		`(?m)^3 +up +queued.*\n2 +up +running`).MatchString(history) {
		t.Errorf("the update that waits is not in the history:\n%s", history)
	}
	third := s.start(t, "up", "--yes", "--skip-preview", "--on-busy", "supersede")
	second.says(t, "superseded by version 4")
	must(t, gate.Open(t.Context()))
	first.mustEnd(t, 0)
	third.mustEnd(t, 0)
	second.mustEnd(t, 3)
	s.does(t, "create a")
	s.fails(t, 3, []string{"superseded by version 4"}, "attach", "3")
}

func TestACancelledUpdateThatWaitsEnds(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, "steps: []\n")
	gate := s.gate(t, "a", fakecloud.Before)
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	first := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	second := s.start(t, "up", "--yes", "--skip-preview")
	second.says(t, "waiting for update 2 of ")
	s.must(t, "cancel", "3", "--yes")
	second.says(t, "cancelled before it began")
	second.mustEnd(t, 3)
	must(t, gate.Open(t.Context()))
	first.mustEnd(t, 0)
	s.fails(t, 3, []string{"cancelled before it began"}, "attach", "3")

	// Its number is not given out again, even by a stack that does not remember it.
	must(t, s.dial(t).TerminateWorkflow(t.Context(), "stack/organization/"+projectName(t)+"/dev", "", "to forget"))
	if again := s.update(t, "up"); !strings.HasSuffix(again.Update, "/dev/4") {
		t.Errorf("the next update is %s", again.Update)
	}
}

func TestQuietPrintsTheSummaryAlone(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, "steps: []\n")
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}",
		"{print: hear me}"))
	said := s.must(t, "--cwd", s.dir, "up", "--yes", "--skip-preview", "--quiet")
	if strings.Contains(said, "fake:index:Named") || strings.Contains(said, "hear me") ||
		!strings.Contains(said, "1 unchanged") {
		t.Errorf("it says\n%s", said)
	}
}

func TestCwdIsWhereTheProjectIs(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	elsewhere := s.in(t.TempDir(), s.env...)
	elsewhere.update(t, "up", "--cwd", s.dir).expect(t, map[string]int{"same": 2})
}

// TestParallelBoundsTheSteps looks at what the cloud holds at a time, while it takes its time over each create.
func TestParallelBoundsTheSteps(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, "steps: []\n")
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{Name: "slow", Do: fakecloud.Delay, Op: fakecloud.Create,
		DelayMS: 50}))
	s.write(t, "scenario.yaml", steps("repeat: 10\n    steps: [{register: 'a-{{i}}', type: fake:index:Auto}]"))
	up := s.start(t, "up", "--yes", "--skip-preview", "--parallel", "2")
	most := 0
	eventually(t, "the update ends", func() bool {
		all, err := s.cloud.Faults(t.Context())
		must(t, err)
		most = max(most, all[0].Held)
		return up.hasEnded()
	})
	up.mustEnd(t, 0)
	if most > 2 {
		t.Errorf("%d creates run at a time", most)
	}
}
