package deployments

import (
	"strings"
	"testing"
)

func TestAQuotaIsChangedOnlyByLimitsThatThereAre(t *testing.T) {
	good := QuotaChange{Organization: "acme", Set: Quota{LimitStacks: 0, LimitVersions: 1, LimitUploadBytes: mostOfLimit},
		Removed: []Limit{LimitUpdates}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for sentence, c := range map[string]QuotaChange{
		"name a limit (stacks, resources, updates": {Organization: "acme"},
		"organization":                  {Set: Quota{LimitStacks: 1}},
		`there is no limit "cores"`:     {Organization: "acme", Set: Quota{"cores": 1}},
		`there is no limit "memory"`:    {Organization: "acme", Removed: []Limit{"memory"}},
		`-1 is no limit for "stacks"`:   {Organization: "acme", Set: Quota{LimitStacks: -1}},
		`0 is no limit for "versions"`:  {Organization: "acme", Set: Quota{LimitVersions: 0}},
		"it can be 0 to 11258":          {Organization: "acme", Set: Quota{LimitStacks: mostOfLimit + 1}},
		"cannot be both set and remove": {Organization: "acme", Set: Quota{LimitStacks: 1}, Removed: []Limit{LimitStacks}},
	} {
		if err := c.Validate(); CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%+v is refused with %v, not with %q", c, err, sentence)
		}
	}
}

func TestEachLimitIsExceededWithASentenceThatSaysHowItIsRaised(t *testing.T) {
	for _, l := range Limits() {
		err := OverQuota("acme", l, 3, "has 4 of them", "")
		if want := "`deployctl quota set acme --" + string(l) + " N`"; CodeOf(err) != CodeQuota ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "its quota allows 3") {
			t.Errorf("%s: %v", l, err)
		}
	}
}
