package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestCtrlCDetachesAndAttachComesBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, sharedHome(t))
	gate := s.gate(t, "named-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	up.interrupt(t)
	up.mustEnd(t, 130)
	for _, text := range []string{"continues", "deployctl attach", "deployctl cancel"} {
		if !strings.Contains(up.stderr.String(), text) {
			t.Errorf("it says %q", up.stderr.String())
		}
	}
	attached := s.start(t, "attach")
	attached.says(t, "named-1 created") // from the beginning
	must(t, gate.Open(t.Context()))
	attached.mustEnd(t, 0)
	s.asIfNothingHappened(t)
}

func TestCancel(t *testing.T) {
	t.Run("lets the steps that run finish", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sharedHome(t))
		gate := s.gate(t, "named-2", fakecloud.Before)
		up := s.start(t, "up", "--yes", "--skip-preview")
		must(t, gate.Wait(waiting(t)))
		s.must(t, "cancel", "--yes")
		must(t, gate.Open(t.Context()))
		up.mustEnd(t, 3)
		s.run(t, "attach").mustEnd(t, 3)
		if s.idOf(t, "named-2") == "" || s.idOf(t, "named-3") != "" {
			t.Errorf("the cloud holds %v", s.objects(t))
		}
		s.stateAgrees(t)
		s.update(t, "up")
		s.asIfNothingHappened(t)
	})
	t.Run("by force ends the steps that run", func(t *testing.T) {
		for _, at := range []fakecloud.Moment{fakecloud.Before, fakecloud.After} {
			for _, object := range []string{"named-2", "auto-2"} {
				t.Run(string(at)+" the effect on "+object, func(t *testing.T) {
					if at == fakecloud.Before || object == "auto-2" {
						soaktest.Only(t)
					}
					t.Parallel()
					s := newStage(t, sharedHome(t))
					gate := s.gate(t, object, at)
					up := s.start(t, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
					must(t, gate.Wait(waiting(t)))
					up.knowsTheRest(t)
					s.must(t, "cancel", "--force", "--yes")
					up.mustEnd(t, 3) // also where the cancel was quicker than finding out
					requests, err := s.cloud.Requests(t.Context())
					must(t, err)
					if !slices.ContainsFunc(requests, func(r fakecloud.Request) bool {
						return r.Op == fakecloud.Cancel
					}) {
						t.Error("the provider was not asked to give up")
					}
					must(t, gate.Open(t.Context()))
					s.update(t, "up")
					s.asIfNothingHappened(t)
				})
			}
		}
	})
}

// TestACancelByForceEndsAProviderThatIsDeaf stops the provider: it answers nobody, not even who asks it to give up.
func TestACancelByForceEndsAProviderThatIsDeaf(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	gate := s.gate(t, "named-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
	must(t, gate.Wait(waiting(t)))
	for _, pid := range s.plugins(t, s.status(t).PID, aPlugin) {
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	s.must(t, "cancel", "--force", "--yes")
	up.mustEnd(t, 3)
	must(t, gate.WaitEmpty(waiting(t)))
	must(t, gate.Open(t.Context()))
	s.update(t, "up")
	s.asIfNothingHappened(t)
}

func TestTwoUpdatesOfOneStackAtOnce(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	gate := s.gate(t, "named-1", fakecloud.Before)
	first := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	second := s.start(t, "up", "--yes", "--json")
	s.fails(t, 4, []string{"busy with update 1", "--on-busy queue"}, "up", "--yes", "--skip-preview", "--on-busy",
		"fail")
	must(t, gate.Open(t.Context()))
	first.mustEnd(t, 0)
	second.mustEnd(t, 0)
	second.report(t).expect(t, map[string]int{"same": layersCreates + 1})
	s.asIfNothingHappened(t)
}

// TestAnUpdateThatWaitsOutlivesItsQueue ends the workflow that is the queue, as the Web UI can.
func TestAnUpdateThatWaitsOutlivesItsQueue(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	gate := s.gate(t, "named-1", fakecloud.Before)
	first := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	second := s.start(t, "up", "--yes", "--skip-preview")
	second.says(t, "waiting for update 1 of ")
	must(t, s.dial(t).TerminateWorkflow(t.Context(), "stack/organization/"+projectName(t)+"/dev", "", "by hand"))
	second.says(t, "submitting it again")
	must(t, gate.Open(t.Context()))
	first.mustEnd(t, 0)
	second.mustEnd(t, 0)
	s.asIfNothingHappened(t)
}

// TestAWebsiteSurvives kills what a website's update stands on once its bucket is there; its provider is in the
// service. The program's host is held meanwhile, so that the update has not ended.
func TestAWebsiteSurvives(t *testing.T) {
	soaktest.Only(t)
	for _, victim := range []string{"the client", "the language host", "the S3 server", "the service"} {
		t.Run("the death of "+victim, func(t *testing.T) {
			t.Parallel()
			aim(t, 5, func() (met bool) {
				h := newHome(t)
				s := &stage{project: h.in(filepath.Join(t.TempDir(), "website"))}
				must(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(root, "examples", "website"))))
				s.must(t, "stack", "init", "dev")
				up := s.start(t, "up", "--yes", "--skip-preview")
				host := s.holdWebsite(t)
				if host != 0 && victim == "the language host" {
					kill(t, host)
				} else if host != 0 {
					killed[victim](t, s, up)
					_ = syscall.Kill(host, syscall.SIGCONT) // unless it went with the service
				}
				s.attached(t).mustEnd(t, 0)
				fetch(t, s.outputs(t)["url"].(string), "text/html")
				s.update(t, "up").expect(t, map[string]int{"same": 10})
				s.update(t, "destroy").expect(t, map[string]int{"delete": 10})
				return host != 0
			})
		})
	}
}

// holdWebsite holds the host of a website's program as soon as the site's bucket is there, and gives its process; 0
// when it has ended by then.
func (s *stage) holdWebsite(t *testing.T) (host int) {
	t.Helper()
	service := s.status(t).PID
	isThere := func() bool {
		buckets, err := filepath.Glob(filepath.Join(s.state(), "data", "s3", "site-*"))
		must(t, err)
		return len(buckets) > 0
	}
	eventually(t, "the program has a host, or has had one", func() bool {
		for _, host = range processesNamed(t, service, "pulumi-language-yaml") {
			return true
		}
		return isThere()
	})
	eventually(t, "the bucket is there", isThere)
	if host == 0 {
		return 0
	}
	if syscall.Kill(host, syscall.SIGSTOP) != nil {
		return 0
	}
	return host
}
