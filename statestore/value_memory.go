package statestore

import (
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/rawjson"
)

const (
	// littleText is the length up to which it does not matter what a text is made of.
	littleText = 64 << 10
	// valueTimes is how many forms of the values of a resource there are while they are read and written again.
	valueTimes = 3
)

// affordable reports, as TooLarge, a text of a client whose values would take too much memory of whoever reads them.
func affordable(what string, text []byte) error {
	if cost := costOf(text); cost > deployments.MaxValueMemory {
		return deployments.TooLarge("the values of %s would take %d MiB of memory; at most %d are possible: store what is "+
			"large as one text, or in a file", what, cost>>20, deployments.MaxValueMemory>>20)
	}
	return nil
}

func costOf(text []byte) int64 {
	if len(text) <= littleText {
		return 0
	}
	return rawjson.Cost(text)
}

// costliest returns what the values of the costliest of some texts take, which are made of one after the other.
func costliest(texts []json.RawMessage) (most int64) {
	for _, text := range texts {
		most = max(most, costOf(text))
	}
	return valueTimes * most
}
