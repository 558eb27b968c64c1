package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/build"
)

// using is what an organization uses, with a limit if it is not 0.
func using(organization string, stacks, limit int64) deployments.QuotaUse {
	q := deployments.QuotaUse{Organization: organization,
		Used: map[deployments.Limit]int64{deployments.LimitStacks: stacks}}
	if limit > 0 {
		q.Limits = deployments.Quota{deployments.LimitStacks: limit}
	}
	return q
}

func TestQuotasAreCountedEveryFewMinutesAndShownAsLongAsThereIsWhatTheyCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, counts := New(build.Info{}), 0
		list, away := []deployments.QuotaUse{using("acme", 3, 5), using("initech", 1, 0)}, error(nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- m.FollowQuotas(ctx, func(context.Context) ([]deployments.QuotaUse, error) {
				counts++
				return list, away
			}, slog.New(slog.DiscardHandler))
		}()
		synctest.Wait()
		for range 3 {
			has(t, shown(m), `deployctl_quota_used{limit="stacks",organization="acme"} 3`,
				`deployctl_quota_limit{limit="stacks",organization="acme"} 5`,
				`deployctl_quota_used{limit="stacks",organization="initech"} 1`)
		}
		if text := shown(m); counts != 1 || strings.Contains(text, `deployctl_quota_limit{limit="stacks",organization="i`) {
			t.Errorf("after %d counts it is\n%s", counts, text)
		}
		list = []deployments.QuotaUse{using("initech", 2, 0)}
		time.Sleep(quotasEvery)
		synctest.Wait()
		text := shown(m)
		has(t, text, `deployctl_quota_used{limit="stacks",organization="initech"} 2`)
		if strings.Contains(text, "acme") {
			t.Errorf("an organization that is gone is shown:\n%s", text)
		}
		away = errors.New("away")
		time.Sleep(quotasEvery)
		has(t, shown(m), `deployctl_quota_used{limit="stacks",organization="initech"} 2`)
		time.Sleep(quotasFor)
		if text := shown(m); strings.Contains(text, "deployctl_quota") {
			t.Errorf("an old count is shown:\n%s", text)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestOfManyOrganizationsThoseWithAQuotaAreShownFirst(t *testing.T) {
	m := New(build.Info{})
	var list []deployments.QuotaUse
	for i := range 2 * mostOrganizations {
		list = append(list, using(fmt.Sprintf("o%d", i), 1, 0))
	}
	m.quotas.learn(append(list, using("zeta", 1, 2)))
	text := shown(m)
	has(t, text, `deployctl_quota_limit{limit="stacks",organization="zeta"} 2`)
	if n := strings.Count(text, "\ndeployctl_quota_used{"); n != mostOrganizations {
		t.Errorf("%d are shown", n)
	}
}
