package servers

import (
	"testing"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

func TestTheEmbeddedTemporalServerChecksForNoUpdates(t *testing.T) {
	t.Setenv("TEMPORAL_VERSION_CHECK_DISABLED", "")
	settings := dynamicconfig.NewCollection(tuning(), log.NewNoopLogger())
	if dynamicconfig.EnableServerVersionCheck.Get(settings)() {
		t.Error("it calls its makers")
	}
}
