package modeltest

import (
	"fmt"

	"github.com/deployctl/deployctl/engine"
)

// line says in a line what an event or a command is about.
func line(x any) string {
	switch x := x.(type) {
	case engine.Registered:
		return fmt.Sprintf("epoch %d registers %s %s %v", x.Epoch, x.Name, x.Inputs.Digest, x.Aliases)
	case engine.Planned:
		return fmt.Sprintf("planned %d %s", x.Op, x.Diff.Change)
	case engine.StepFinished:
		return fmt.Sprintf("%s %d %s", x.Outcome, x.Op, x.ID)
	case engine.Plan:
		return fmt.Sprintf("plan %d %s recreate=%v", x.Op, x.URN.Name(), x.Recreate)
	case engine.Cascade:
		text := fmt.Sprintf("cascade %d %s:", x.Op, x.Root.URN.Name())
		for _, s := range x.Candidates {
			text += " " + s.URN.Name()
		}
		return text
	case engine.Step:
		text := fmt.Sprintf("%s %d %s", x.Kind, x.Op, x.URN.Name())
		if x.Old != nil {
			text += " from " + x.Old.ID
		}
		return text
	case engine.Settle:
		return "settle " + line(x.Step)
	case engine.Reply:
		return fmt.Sprintf("reply %s %s %s %s", x.URN.Name(), x.Result, x.ID, x.Error)
	case engine.Emit:
		return fmt.Sprintf("%s %s %s", x.Kind, x.Step, x.Message)
	}
	return fmt.Sprintf("%T%+v", x, x)
}
