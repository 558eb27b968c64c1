package app

import (
	"github.com/deployctl/deployctl/internal/pluginhost/process"
	"os"
	"testing"

	"github.com/deployctl/deployctl/provider"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestCommandsOfAnUpdateSeeItsEnvironmentAndNoneOfTheServices(t *testing.T) {
	t.Setenv("SERVICE_SECRET", "hidden")
	server := builtin(infrastructure{})["deployctl"](process.Environment{
		Env: []string{"PATH=" + os.Getenv("PATH"), "USERS=own"}})
	c, stop, err := provider.Client(server)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	resp, err := c.Create(t.Context(), &pulumirpc.CreateRequest{
		Urn: "urn:pulumi:dev::web::deployctl:command:Run::job",
		Properties: &structpb.Struct{Fields: map[string]*structpb.Value{
			"create": structpb.NewStringValue(`echo "$USERS [$SERVICE_SECRET]"`),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if said := resp.GetProperties().GetFields()["stdout"].GetStringValue(); said != "own []" {
		t.Errorf("the command sees %q", said)
	}
}
