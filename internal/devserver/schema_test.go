package devserver

import (
	"os"
	"testing"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/deployctl/deployctl/internal/devserver/servers"
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
	server, err := StartTemporal(t.Context(), newHome(t), earlier{})
	must(t, err)
	defer func() { must(t, server.Close(t.Context())) }()
	answer, err := operatorservice.NewOperatorServiceClient(dialAddress(t, server.Address,
		server.Credentials)).ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: Namespace})
	must(t, err)
	for name := range SearchAttributes() {
		if _, ok := answer.GetCustomAttributes()[name]; !ok {
			t.Errorf("no search attribute %s", name)
		}
	}
}

func TestADatabaseIsPrivate(t *testing.T) {
	h := mustOpen(t, newHome(t))
	must(t, os.MkdirAll(h.temporal(), 0o700))
	must(t, createDatabase(h, servers.All{}))
	info, err := os.Stat(h.database())
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %s", info.Mode())
	}
}
