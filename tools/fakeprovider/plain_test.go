package fakeprovider_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestAProviderWithAMannerSaysEverythingInWords(t *testing.T) {
	for manner, wants := range map[string][]string{
		"bridged":    {"StatusCode: 500", "StatusCode: 429", "EntityAlreadyExists"},
		"google":     {"googleapi: Error 500", "googleapi: Error 429", "alreadyExists"},
		"kubernetes": {"Internal error occurred", "Too many requests", "already exists"},
		"native":     {"ServiceInternalError", "Throttling", "AlreadyExists"},
	} {
		p := start(t)
		p.configure(props{"endpoint": p.cloud, "errors": manner})
		for i, want := range wants {
			in, _ := p.check("Named", nil, props{"name": fmt.Sprint(manner, i%2)})
			if i < 2 {
				p.admin("PUT", "faults/f", fmt.Sprintf(
					`{"do": "fail", "op": "create", "at": "after", "status": %d, "times": 1}`, []int{500, 429}[i]))
			} else {
				p.admin("DELETE", "faults", "")
			}
			_, err := p.create("Named", in)
			if i == 0 && manner == "bridged" {
				want = "StatusCode: 409" // it has tried again
			}
			if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, without %q", manner, err, want)
			}
		}
	}
	if _, failures := start(t).check("Named", nil, props{"name": "n"}); len(failures) > 0 {
		t.Errorf("failures of %v", failures)
	}
}
