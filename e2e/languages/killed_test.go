//go:build unix

package languages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// Both programs write their process's id to a file when they begin, and register three resources, each of which needs
// the one before.
const (
	chainInNode = `
import * as fs from "fs";
import * as pulumi from "@pulumi/pulumi";

fs.appendFileSync(process.env.BEGINNINGS!, process.pid + "\n");

class Auto extends pulumi.CustomResource {
    declare readonly arn: pulumi.Output<string>;
    constructor(name: string, links: pulumi.Input<string>[]) {
        super("fake:index:Auto", name, { links, arn: undefined }, { version: "0.1.0" });
    }
}

const first = new Auto("first", []);
const second = new Auto("second", [first.arn]);
export const arn = new Auto("third", [second.arn]).arn;
`
	chainInGo = `
package main

import (
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

type auto struct {
	pulumi.CustomResourceState
	Arn pulumi.StringOutput ` + "`pulumi:\"arn\"`" + `
}

func main() {
	file, err := os.OpenFile(os.Getenv("BEGINNINGS"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(file, os.Getpid())
	pulumi.Run(func(ctx *pulumi.Context) error {
		links := pulumi.StringArray{}
		for _, name := range []string{"first", "second", "third"} {
			var made auto
			inputs := pulumi.Map{"links": links}
			err := ctx.RegisterResource("fake:index:Auto", name, inputs, &made, pulumi.Version("0.1.0"))
			if err != nil {
				return err
			}
			links = pulumi.StringArray{made.Arn}
			ctx.Export("arn", made.Arn)
		}
		return nil
	})
}
`
)

// startedAgain kills the program's own process, not its host, while the create of the second of three resources is held
// before its effect, and after it. The create is let go when the program has begun again.
func startedAgain(t *testing.T, h *harness.Home, dir string) {
	for _, at := range []fakecloud.Moment{fakecloud.Before, fakecloud.After} {
		t.Run(string(at)+" an effect", func(t *testing.T) { killAndGoOn(t, h, dir, at) })
	}
}

func killAndGoOn(t *testing.T, h *harness.Home, dir string, at fakecloud.Moment) {
	cloud, env := harness.Cloud(t)
	beginnings := filepath.Join(t.TempDir(), "beginnings")
	p := h.Deployctl(dir, env, "BEGINNINGS="+beginnings)
	useStack(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	gate, err := cloud.SetGate(ctx, fakecloud.Fault{Name: "gate", Op: fakecloud.Create, Object: "second", At: at,
		Times: 1})
	harness.Must(t, err)

	up := p.Begin(t, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
	harness.Must(t, gate.Wait(ctx))
	first := begun(t, beginnings, 1)[0]
	harness.Must(t, syscall.Kill(first, syscall.SIGKILL))
	if again := begun(t, beginnings, 2)[1]; again == first {
		t.Errorf("both programs are process %d", first)
	}
	harness.Must(t, gate.Open(ctx))
	if end := up(); end.Code != 0 {
		t.Fatalf("up ends with %d; it says\n%s", end.Code, end.Said())
	}

	made, err := cloud.Effects(ctx, 0)
	harness.Must(t, err)
	var names []string
	for _, e := range made {
		names = append(names, fmt.Sprintf("%s %s", e.Op, e.Owner[strings.LastIndex(e.Owner, "::")+2:]))
	}
	if want := []string{"create first", "create second", "create third"}; !slices.Equal(names, want) {
		t.Errorf("the cloud's effects are %v, not %v", names, want)
	}
	p.Expect(t, harness.Changes{"same": 4}, "up") // with the stack
}

// begun waits until a program has begun n times, and gives its processes.
func begun(t *testing.T, file string, n int) (pids []int) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("the program has begun %d times", n), func() bool {
		text, _ := os.ReadFile(file) //nolint:gosec // the test's own; it may not be there yet
		pids = nil
		for line := range strings.Lines(string(text)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && strings.HasSuffix(line, "\n") {
				pids = append(pids, pid)
			}
		}
		return len(pids) >= n
	})
	return pids
}
