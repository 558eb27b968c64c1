package devserver

import (
	"os"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

func TestANamespaceOfAnEarlierVersionGetsWhatIsNew(t *testing.T) {
	h := mustOpen(t, newHome(t))
	_, err := ensureData(t.Context(), h, Ports{}, new(reserved))
	must(t, err)
	must(t, writeJSON(h.schema(), currentSchema))
	must(t, createDatabase(h))
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, Namespace, false,
		map[string]enums.IndexedValueType{"Org": enums.INDEXED_VALUE_TYPE_KEYWORD})
	must(t, err)
	must(t, sqliteschema.CreateNamespaces(databaseConfig(h), namespace))

	server, err := StartTemporal(t.Context(), string(h))
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
	must(t, createDatabase(h))
	info, err := os.Stat(h.database())
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %s", info.Mode())
	}
}
