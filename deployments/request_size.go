package deployments

import (
	"encoding/json"
	"fmt"
)

// validateSize limits the request as it is sent, so that no field can be forgotten.
func (r UpdateRequest) validateSize() error {
	size, err := sizeAsJSON(r)
	if err != nil {
		return Errorf(CodeInvalid, "the request cannot be sent: %w", err)
	}
	if size <= MaxRequestSize {
		return nil
	}
	large := r.largestPart()
	return Errorf(CodeInvalid, "the request is %d KiB, and at most %d KiB are possible: %d KiB of it are its %s; %s",
		size>>10, MaxRequestSize>>10, large.size>>10, large.name, large.advice)
}

// requestPart is a part of a request, and what to do when it is too large.
type requestPart struct {
	name, advice string
	value        any
	size         int
}

// largestPart returns the part of a request that takes most of it.
func (r UpdateRequest) largestPart() (largest requestPart) {
	const files = "put large values into files of the project"
	for _, part := range []requestPart{
		{name: r.configName(), value: r.Config, advice: files},
		{name: "environment", value: r.Environment, advice: "unset variables that the program does not need"},
		{name: "targets and other names of resources", advice: "use patterns with '*'",
			value: [][]string{r.Targets, r.Excludes, r.Replace, r.Adopt}},
		{name: "resources to import", value: []any{r.Imports, r.Variables}, advice: "import them in several parts"},
		{name: "policy packs with their configuration", value: r.PolicyPacks, advice: "shorten the configuration"},
		{name: "saved plan", value: r.Plan, advice: "make the change in several parts, each with a plan of its targets"},
		{name: "answers about pending creates", value: r.Settle, advice: "answer for some of them at a time"},
		{name: "description of where it was made", value: r.Lease, advice: "unset variables from which the client makes it"},
		{name: "message", value: r.Message, advice: "shorten it"},
	} {
		if size, err := sizeAsJSON(part.value); err == nil && size > largest.size {
			part.size = size
			largest = part
		}
	}
	return largest
}

// configName is the word for the configuration, with its largest value.
func (r UpdateRequest) configName() string {
	largest, most := "", 0
	for key, v := range r.Config {
		if n := len(v.Value); n > most || n == most && key < largest {
			largest, most = key, n
		}
	}
	if most == 0 {
		return "configuration"
	}
	return fmt.Sprintf("configuration (%d KiB the value of %s)", most>>10, quoted(largest))
}

func sizeAsJSON(v any) (int, error) {
	text, err := json.Marshal(v)
	return len(text), err
}
