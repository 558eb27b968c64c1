package traffic

import (
	"testing"
	"time"
)

func TestAKeySaysWhatItsObjectIsWithoutNames(t *testing.T) {
	for key, want := range map[string]string{
		"stacks/run/update/files/head.json":                      "stack/head.json",
		"stacks/o/p/s/updates/12/events/output-123-456/00000001": "stack/updates/*/events/output/*",
		"stacks/o/p/s/updates/12/events/":                        "stack/updates/*/events/",
		"stacks/o/p/s/checkpoints/7.json.zst":                    "stack/checkpoints/*",
		"blobs/ABC/files/2026-11/file-12":                        "blobs/*/files/*/*",
		"service/mode":                                           "service/mode",
		"stacks/o/":                                              "stacks/*/",
	} {
		if got := masked(key); got != want {
			t.Errorf("%s is %s, not %s", key, got, want)
		}
	}
}

func TestTheChainHasWhatWaitsForOneAnother(t *testing.T) {
	at := func(object string, begin, end int) Request {
		base := time.Unix(0, 0)
		return Request{Method: "GET", Object: object, Begin: base.Add(time.Duration(begin)),
			End: base.Add(time.Duration(end))}
	}
	chain := Chain([]Request{at("long", 0, 100), at("a", 0, 10), at("b", 10, 20), at("beside", 12, 25), at("c", 30, 40),
		at(Probe, 21, 22)})
	if len(chain) != 3 || chain[0].Object != "a" || chain[1].Object != "b" || chain[2].Object != "c" {
		t.Errorf("the chain is %v", chain)
	}
}
