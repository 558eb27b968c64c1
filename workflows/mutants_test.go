package workflows

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, []mutanttest.Mutant{
		{
			Name: "an update that waits keeps its version when another one migrates", File: "queue.go",
			Old: "w.Update = q.newest()", New: "",
		},
		{
			Name: "a request that comes again is another update", File: "queue.go",
			Old: "return a.RequestID == requestID", New: "return false",
		},
		{
			Name: "what is superseded still waits", File: "queue.go",
			Old: "\t}\n\tq.Queue = nil\n", New: "\t}\n",
		},
	}, []string{"-run", "Queue", "."})
}
