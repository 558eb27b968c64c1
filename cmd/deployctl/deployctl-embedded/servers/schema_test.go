package servers_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/deployctl-embedded/servers"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/devserver/parts"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
)

// earlier makes the namespace as an earlier version did.
type earlier struct{ servers.All }

func (e earlier) StartTemporal(t parts.Temporal) (stop func() error, err error) {
	t.SearchAttributes = map[string]enums.IndexedValueType{"Org": enums.INDEXED_VALUE_TYPE_KEYWORD}
	return e.All.StartTemporal(t)
}

func TestANamespaceOfAnEarlierVersionGetsWhatIsNew(t *testing.T) {
	server, err := devserver.StartTemporal(t.Context(), newHome(t), earlier{})
	must(t, err)
	defer func() { must(t, server.Close(t.Context())) }()
	answer, err := operatorservice.NewOperatorServiceClient(dialAddress(t, server.Address,
		server.Credentials)).ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: devserver.Namespace})
	must(t, err)
	for name := range devserver.SearchAttributes() {
		if _, ok := answer.GetCustomAttributes()[name]; !ok {
			t.Errorf("no search attribute %s", name)
		}
	}
}

func TestADatabaseIsPrivate(t *testing.T) {
	home := newHome(t)
	server, err := devserver.StartTemporal(t.Context(), home, servers.All{})
	must(t, err)
	defer func() { must(t, server.Close(t.Context())) }()
	info, err := os.Stat(filepath.Join(home, "data", "temporal", "temporal.db"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %s", info.Mode())
	}
}
