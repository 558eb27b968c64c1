// Package production plays a production service as an operator has it: Temporal on PostgreSQL, an S3 server, two serve
// behind a load balancer and three workers, each a process of its own that is not deployctl's embedded one, and clients
// that update stacks all the time. Parts are upgraded, taken away and changed meanwhile.
package production

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var play = flag.Bool("production", false, "play a production service")

// unreachable is the exit code of a command that could not reach the service.
const unreachable = 5

// TestAProductionServiceOutlasts plays each disturbance under load. No update is lost or stuck, nothing is made twice,
// and every stack goes on afterwards without a repair. It tells how many commands failed meanwhile, and how long the
// recovery took.
func TestAProductionServiceOutlasts(t *testing.T) {
	if !*play {
		t.Skip("make test-production plays a production service")
	}
	s := newService(t)
	var actors []*actor
	for i := range clients {
		actors = append(actors, s.newActor(t, fmt.Sprintf("team-%d", i+1)))
	}
	for _, d := range []struct {
		what string
		do   func(*testing.T, *service, *load) (back time.Time)
	}{
		{"an upgrade and the way back", upgraded},
		{"PostgreSQL that is stopped", withoutPostgreSQL},
		{"Temporal that is killed", withoutTemporal},
		{"S3 that is killed", withoutS3},
		{"new credentials of the bucket", newCredentials},
		{"new keys and tokens", newKeys},
		{"a full disk of the workers", fullDisk},
		{"clocks that are apart", clocksApart},
	} {
		ok := t.Run(d.what, func(t *testing.T) {
			l := begin(actors)
			var back, flowed time.Time
			func() {
				defer func() { // also if the disturbance fails or is skipped
					for _, e := range l.finish(t) {
						if e.code != 0 && e.code != unreachable {
							t.Errorf("an update of %s ends with %d; it says\n%s", e.stack, e.code, e.said)
						}
					}
				}()
				l.flows(t)
				back = d.do(t, s, l)
				s.become(t, 200, s.processes()...)
				t.Logf("every process is ready %.1f s after the end of the disturbance", time.Since(back).Seconds())
				flowed = l.flows(t)
			}()
			t.Log(told(l.ended, back, flowed))
			for _, a := range actors {
				a.agrees(t, l.applied(a))
			}
			s.idle(t)
		})
		if !ok {
			return // the stacks are not as the next disturbance expects them
		}
	}
}

// told sums up what clients saw.
func told(all []ended, back, flowed time.Time) string {
	failed, longest, late := map[string]int{}, time.Duration(0), time.Duration(0)
	for _, e := range all {
		longest = max(longest, e.end.Sub(e.began))
		if e.code != 0 {
			failed[fmt.Sprintf("exit code %d: %s", e.code, e.why())]++
		}
		if e.began.Before(back) {
			late = max(late, e.end.Sub(back))
		}
	}
	n := 0
	var reasons strings.Builder
	for _, why := range slices.Sorted(maps.Keys(failed)) {
		n += failed[why]
		fmt.Fprintf(&reasons, "\n  %d with %s", failed[why], why)
	}
	return fmt.Sprintf("%d commands, %d failed, the longest took %.1f s; after the disturbance, the last that had begun "+
		"before ended within %.1f s, and every client had ended a new one within %.1f s%s", len(all), n,
		longest.Seconds(), late.Seconds(), flowed.Sub(back).Seconds(), &reasons)
}

// upgraded replaces workers and then serve by the next build, and then by this one again, as docs/upgrades.md says.
func upgraded(t *testing.T, s *service, l *load) time.Time {
	for _, binary := range []string{s.binary + "-next", s.binary} {
		s.roll(t, binary, nil, s.workers...)
		s.roll(t, binary, nil, s.serves...)
		l.flows(t)
	}
	return time.Now()
}

// outage is how long servers are away: longer than a step may go without a heartbeat.
const outage = 45 * time.Second

func withoutPostgreSQL(t *testing.T, s *service, l *load) time.Time {
	return s.away(t, l, "Temporal at ", s.postgres.Crash, s.postgres.Launch)
}

func withoutTemporal(t *testing.T, s *service, l *load) time.Time {
	return s.away(t, l, "Temporal at ", s.temporal.Kill, s.temporal.Start)
}

func withoutS3(t *testing.T, s *service, l *load) time.Time {
	return s.away(t, l, "the bucket ", s.s3.Kill, s.s3.Start)
}

// away ends a server, and starts it again after the outage, when no process is ready and clients know what they wait
// for.
func (s *service) away(t *testing.T, l *load, said string, end, start func() error) (back time.Time) {
	t.Helper()
	harness.Must(t, end())
	gone := time.Now()
	over := time.After(outage)
	s.become(t, 503, s.processes()...)
	l.told(t, gone, said)
	<-over
	harness.Must(t, start())
	back = time.Now()
	t.Logf("it was away for %.1f s", back.Sub(gone).Seconds())
	return back
}

// newCredentials changes the secret on the S3 server, and gives it to the service when that is refused.
func newCredentials(t *testing.T, s *service, l *load) time.Time {
	const secret = "the-second-secret-access-key"
	s.s3.rotate(t, secret)
	changed := time.Now()
	s.become(t, 503, s.processes()...)
	l.told(t, changed, "does not accept the credentials")
	s.s3.hand(t, secret)
	t.Logf("the bucket refused the service for %.1f s", time.Since(changed).Seconds())
	return time.Now()
}

// newKeys rotates the keys that seal, the master key, and the tokens of the clients, as docs/backup.md says.
func newKeys(t *testing.T, s *service, l *load) time.Time {
	s.key(t, "rotate")
	l.flows(t)
	old, err := os.ReadFile(s.keys)
	harness.Must(t, err)
	next := newKey(t)
	for _, keys := range []string{next + "\n" + string(old), next} {
		s.file(t, "key", keys)
		for _, p := range s.processes() {
			s.restart(t, p)
		}
		s.key(t, "rotate")
		l.flows(t)
	}
	for i, a := range l.actors {
		s.token(t, a, fmt.Sprintf("second-%d", i+1))
	}
	l.flows(t)
	for _, a := range l.actors {
		s.admin.Must(t, "token", "rm", a.stack)
	}
	return time.Now()
}

// fullDisk fills the disk of the workers until a command waits for it.
func fullDisk(t *testing.T, s *service, l *load) time.Time {
	empty := s.fill(t)
	full := time.Now()
	defer func() {
		if empty != nil {
			empty()
		}
	}()
	l.told(t, full, "it is tried again by itself")
	empty()
	empty = nil
	t.Logf("the disk was full for %.1f s", time.Since(full).Seconds())
	return time.Now()
}

// clocksApart gives each process a clock of its own: those of serve within the two minutes from Temporal's that are
// tolerated, those of workers beyond, and ends with the right ones.
func clocksApart(t *testing.T, s *service, l *load) time.Time {
	apart := filepath.Join(t.TempDir(), "deployctl")
	build := exec.Command(filepath.Join(harness.Root(), "tools", "clockapart"), apart, "./cmd/deployctl")
	build.Dir = harness.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, seconds := range []int{90, -90} {
		s.roll(t, apart, []string{fmt.Sprint("CLOCK_APART=", seconds)}, s.serves[i])
	}
	for i, seconds := range []int{-300, 0, 300} {
		s.roll(t, apart, []string{fmt.Sprint("CLOCK_APART=", seconds)}, s.workers[i])
	}
	for range 3 {
		l.flows(t)
	}
	s.roll(t, s.binary, []string{"CLOCK_APART="}, s.processes()...)
	return time.Now()
}

// idle waits until nothing runs or waits in the service.
func (s *service) idle(t *testing.T) {
	t.Helper()
	var last string
	harness.Eventually(t, "nothing runs or waits", func() bool {
		var rows []any
		last = s.admin.Must(t, "ps", "--json")
		harness.Must(t, json.Unmarshal([]byte(last), &rows))
		return len(rows) == 0
	})
}

// agrees brings the stack to where its program wants it, which needs one update and no repair, and no change if a
// command has said that the program is applied. Then nothing is left to do, the state agrees with the cloud, and each
// update is in the history with its result.
func (a *actor) agrees(t *testing.T, applied bool) {
	t.Helper()
	if !applied {
		a.Update(t, "up")
	}
	if left := a.Update(t, "up").Steps; len(left) > 0 {
		t.Errorf("%s: after a successful update, the same one does %v", a.stack, left)
	}
	for _, step := range a.Update(t, "refresh").Steps {
		if !strings.HasSuffix(step, " []") {
			t.Errorf("%s: a refresh finds %s", a.stack, step)
		}
	}
	state := a.Deployment(t)
	if len(state.PendingOperations) > 0 {
		t.Errorf("%s: there are pending operations: %v", a.stack, state.PendingOperations)
	}
	objects, err := a.cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	missing := known(state.Resources)
	for _, o := range objects {
		if key := o.Owner + " " + o.ID; missing[key] {
			delete(missing, key)
		} else {
			t.Errorf("%s: %s %s is in no state", a.stack, o.Kind, o.ID)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s: only the state has %v", a.stack, missing)
	}
	duplicates, err := a.cloud.Duplicates(t.Context())
	harness.Must(t, err)
	effects, err := a.cloud.Effects(t.Context(), 0)
	harness.Must(t, err)
	if twice := createdTwice(effects); len(duplicates)+len(twice) > 0 {
		t.Errorf("%s: made twice: %v %v", a.stack, duplicates, twice)
	}
	a.remembers(t)
}

// known are the resources of a state that are in a cloud.
func known(resources []apitype.ResourceV3) map[string]bool {
	all := map[string]bool{}
	for _, r := range resources {
		if r.Custom && strings.HasPrefix(string(r.Type), "fake:") {
			all[string(r.URN)+" "+string(r.ID)] = true
		}
	}
	return all
}

// createdTwice are the owners of several objects that were created. No resource is ever created again rightly.
func createdTwice(effects []fakecloud.Effect) (owners []string) {
	created := map[string]int{}
	for _, e := range effects {
		if e.Op == fakecloud.Create {
			if created[e.Owner]++; created[e.Owner] == 2 {
				owners = append(owners, e.Owner)
			}
		}
	}
	return owners
}

// remembers looks in the history of the stack for an update that is missing, and for one that did not succeed. One that
// another build has continued has moved to a later version.
func (a *actor) remembers(t *testing.T) {
	t.Helper()
	var updates []deployments.UpdateInfo
	harness.Must(t, json.Unmarshal([]byte(a.Must(t, "stack", "history", "--limit", "10000", "--json")), &updates))
	slices.Reverse(updates)
	for i, u := range updates {
		if u.Update.Number() != i+1 {
			t.Fatalf("%s: %s is in the place of version %d", a.stack, u.Update, i+1)
		}
		if u.Status != "succeeded" && (u.Status != "moved" || u.Next == "") {
			t.Errorf("%s: %s has %s: %s", a.stack, u.Update, u.Status, u.Error)
		}
	}
}
