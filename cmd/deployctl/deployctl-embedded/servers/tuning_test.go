package servers_test

import (
	"testing"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"

	"github.com/deployctl/deployctl/cmd/deployctl/deployctl-embedded/servers"
)

func TestTheEmbeddedTemporalServerChecksForNoUpdates(t *testing.T) {
	t.Setenv("TEMPORAL_VERSION_CHECK_DISABLED", "")
	settings := dynamicconfig.NewCollection(servers.Tuning(), log.NewNoopLogger())
	if dynamicconfig.EnableServerVersionCheck.Get(settings)() {
		t.Error("it calls its makers")
	}
}
