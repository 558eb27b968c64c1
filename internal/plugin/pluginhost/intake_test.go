package pluginhost

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// TestTheMessagesOfAnUpdateTakeMemoryOfItsOrganization sends one to the engine while others have all the memory.
func TestTheMessagesOfAnUpdateTakeMemoryOfItsOrganization(t *testing.T) {
	const size = 64 << 20
	pool := mempool.New(size)
	said := make(chan string, 10)
	h := open(t, Options{Intake: intake.New(pool, "acme"), Log: func(m Message) { said <- m.Text }})
	other := pool.Claim("other", nil)
	if err := other.Take(t.Context(), size, 0); err != nil {
		t.Fatal(err)
	}
	log := func(text string) error {
		conn, err := grpc.NewClient(h.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = pulumirpc.NewEngineClient(conn).Log(waittest.Context(t), &pulumirpc.LogRequest{
			Severity: pulumirpc.LogSeverity_INFO, Message: text})
		return err
	}
	large, logged := strings.Repeat("x", 1<<20), make(chan error, 1)
	go func() { logged <- log(large) }()
	for range 20 { // others are received meanwhile
		if err := log("small"); err != nil {
			t.Fatal(err)
		}
		if text := waittest.For(t, "a small message", said); text != "small" {
			t.Fatalf("one of %d bytes is received though nothing is free", len(text))
		}
	}
	other.Release()
	if err := waittest.For(t, "the large message", logged); err != nil {
		t.Error(err)
	}
}

// TestWhatAProviderAnswersIsCountedUntilItsCallerIsDone checks inputs that are answered as they are.
func TestWhatAProviderAnswersIsCountedUntilItsCallerIsDone(t *testing.T) {
	const size = 64 << 20
	pool := mempool.New(size)
	h := open(t, Options{Intake: intake.New(pool, "acme"), Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p := configured(t, h, "tiny", "a")
	ctx, release := intake.WithHold(t.Context())
	large := resource.PropertyMap{"v": resource.NewProperty(strings.Repeat("x", 1<<20))}
	answer, err := p.Check(ctx, plugin.CheckRequest{URN: "urn:pulumi:dev::web::tiny:index:Thing::a", News: large})
	if err != nil || len(answer.Properties["v"].StringValue()) != 1<<20 {
		t.Fatalf("it answers %d properties, %v", len(answer.Properties), err)
	}
	all := func() error {
		other := pool.Claim("other", nil)
		defer other.Release()
		return other.Take(t.Context(), size, 0)
	}
	if all() == nil {
		t.Error("nothing is taken for the answer")
	}
	release()
	if err := all(); err != nil {
		t.Error(err)
	}
}
