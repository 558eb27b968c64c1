package console

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// logs are logs of updates of several organizations that are read as long as a test wants.
type logs struct {
	*runs
	begun map[string]int           // how often the reading of one was begun, by organization
	slow  map[string]chan struct{} // the logs of an organization are read when this is closed
}

// newLogs must be called in a bubble of synctest: begun is read when all of it waits.
func newLogs(t *testing.T, slow ...string) *logs {
	l := &logs{begun: map[string]int{}, slow: map[string]chan struct{}{}}
	for _, organization := range slow {
		l.slow[organization] = make(chan struct{})
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		synctest.Wait()
	})
	begun := make(chan string)
	go func() {
		for {
			select {
			case organization := <-begun:
				l.begun[organization]++
			case <-ctx.Done():
				return
			}
		}
	}()
	l.runs = newRuns(ctx, func(
		ctx context.Context, u deployments.UpdateName, send func(deployments.WatchEvent) error,
	) error {
		select {
		case begun <- u.Organization:
		case <-ctx.Done():
			return ctx.Err()
		}
		if slow := l.slow[u.Organization]; slow != nil {
			select {
			case <-slow:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if u.Project == "live" {
			if err := send(deployments.WatchEvent{Progress: &deployments.Progress{}}); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	return l
}

// look looks at an update of an organization; those of the project live go on.
func (l *logs) look(organization, project string, version int) (*run, error) {
	u := deployments.UpdateInfo{Started: began, Update: deployments.UpdateName{Version: fmt.Sprint(version),
		StackName: deployments.StackName{Organization: organization, Project: project, Stack: "s"}}}
	if project != "live" {
		u.Ended = began
	}
	return l.of(context.Background(), u)
}

func (l *logs) begin(organization, project string, version int) (looked chan error) {
	looked = make(chan error, 1)
	go func() {
		_, err := l.look(organization, project, version)
		looked <- err
	}()
	synctest.Wait()
	return looked
}

func TestManyUpdatesOfOneOrganizationEndNoPageOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "acme")
		waiting := l.begin("acme", "p", 1)
		if _, err := l.look("other", "live", 1); err != nil {
			t.Fatal(err)
		}
		for i := range 3 * mostRuns {
			if _, err := l.look("evil", "p", i); err != nil {
				t.Fatal(err)
			}
		}
		close(l.slow["acme"])
		if err := <-waiting; err != nil {
			t.Errorf("a log of another organization is not read to its end: %v", err)
		}
		for range 2 {
			_, acme := l.look("acme", "p", 1)
			_, other := l.look("other", "live", 1)
			if err := errors.Join(acme, other); err != nil {
				t.Error(err)
			}
		}
		if synctest.Wait(); l.begun["acme"] != 1 || l.begun["other"] != 1 {
			t.Errorf("the logs of other organizations are read %d and %d times", l.begun["acme"], l.begun["other"])
		}
		if len(l.all) > mostRuns {
			t.Errorf("%d updates are kept", len(l.all))
		}
	})
}

func TestLogsThatAreWaitedForGiveWayToThoseOfAnotherOrganization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "evil")
		if _, err := l.look("other", "live", 1); err != nil {
			t.Fatal(err)
		}
		var waiting []chan error
		for i := range mostRuns + 1 {
			waiting = append(waiting, l.begin("evil", "p", i))
		}
		if _, err := l.look("acme", "p", 1); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		close(l.slow["evil"])
		refused := 0
		for i, looked := range waiting {
			err := <-looked
			if err != nil {
				refused++
			}
			if first := mostRuns - 2; (err != nil) != (i >= first) ||
				err != nil && deployments.CodeOf(err) != deployments.CodeUnavailable {
				t.Errorf("look %d ends with %v", i, err)
			}
		}
		if l.begun["other"] != 1 || len(l.all) > mostRuns || refused != 3 {
			t.Errorf("%d are kept, %d were refused, and that of another was begun %d times", len(l.all), refused,
				l.begun["other"])
		}
	})
}

func TestLargeLogsOfOneOrganizationForgetNoneOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t)
		large := func(organization string, version, size int) {
			k, err := l.look(organization, "p", version)
			if err != nil {
				t.Fatal(err)
			}
			k.mu.Lock()
			k.told.size = size
			k.mu.Unlock()
			l.bound()
		}
		large("acme", 1, mostKept/2+1)
		large("other", 1, 1)
		for i := range 10 {
			large("evil", i, mostKept/8)
		}
		if _, err := l.look("acme", "p", 1); err != nil {
			t.Error(err)
		}
		kept, size := map[string]int{}, 0
		for _, k := range l.all {
			kept[k.update.Organization]++
			size += k.told.size
		}
		if size > mostKept || kept["acme"] != 1 || kept["other"] != 1 || kept["evil"] != 3 {
			t.Errorf("%d bytes are kept, of %v", size, kept)
		}
	})
}

func TestALogIsReadToItsEndHoweverLongSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "acme")
		waiting := l.begin("acme", "p", 1)
		time.Sleep(5 * unreadFor)
		close(l.slow["acme"])
		if err := <-waiting; err != nil {
			t.Errorf("the log is not read to its end: %v", err)
		}
	})
}
