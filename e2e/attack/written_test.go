//go:build unix

package attack

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
)

// largestWorker is how much memory a worker may ever take by what clients have written, in MiB.
const largestWorker = 512

// stockClient speaks the Pulumi Service API, with compressed bodies, about one stack.
type stockClient struct {
	*testing.T
	api, stack, token string
	noise             bool                   // its states compress hardly
	renewed           atomic.Pointer[string] // the authorization of its lease since that was renewed
}

// ask makes a call, again as long as the service is busy, and returns how it is answered. Like the stock CLI, it does
// so too when it cannot read that, because it still writes when a body that gives way is answered and no more read.
func (c *stockClient) ask(method, path, authorization, body string) (status int, text string) {
	c.Helper()
	packed := c.packed(body)
	for status = http.StatusServiceUnavailable; status == http.StatusServiceUnavailable; {
		ctx := patient(c.T) // of each try: on a busy machine many wait for their turn longer than one may take
		r, err := http.NewRequestWithContext(ctx, method, c.api+"/api/stacks/org/"+c.stack+path, bytes.NewReader(packed))
		harness.Must(c.T, err)
		if newest := c.renewed.Load(); newest != nil && strings.HasPrefix(authorization, leaseScheme) {
			authorization = *newest
		}
		r.Header.Set("Authorization", authorization)
		r.Header.Set("Content-Encoding", "gzip")
		answer, err := http.DefaultClient.Do(r)
		if err != nil && ctx.Err() == nil && len(packed) > largeBody {
			continue
		}
		harness.Must(c.T, err)
		said, err := io.ReadAll(answer.Body)
		harness.Must(c.T, err)
		_ = answer.Body.Close()
		status, text = answer.StatusCode, string(said)
	}
	return status, text
}

// largeBody is more than is on its way when a client reads the answer.
const largeBody = 16 * mib

// packed returns a compressed text.
func (c *stockClient) packed(text string) []byte {
	c.Helper()
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		_, err = io.WriteString(writer, text)
	}
	if err == nil {
		err = writer.Close()
	}
	harness.Must(c.T, err)
	return packed.Bytes()
}

// want makes a call that is answered with one of some statuses.
func (c *stockClient) want(method, path, authorization, body string, statuses ...int) string {
	c.Helper()
	status, text := c.ask(method, path, authorization, body)
	for _, want := range statuses {
		if status == want {
			return text
		}
	}
	c.Errorf("%s %s with %d bytes is answered %d, not %v: %.300s", method, path, len(body), status, statuses, text)
	return text
}

// create makes the stack.
func (c *stockClient) create() {
	c.Helper()
	project, stack, _ := strings.Cut(c.stack, "/")
	whole := &stockClient{T: c.T, api: c.api, stack: project, token: c.token}
	whole.want(http.MethodPost, "", c.token, `{"stackName":"`+stack+`"}`, http.StatusOK)
}

// begin starts an update of a kind, and returns its path and the authorization of its lease.
func (c *stockClient) begin(kind string) (path, lease string) {
	c.Helper()
	var made struct{ UpdateID string }
	harness.Must(c.T, json.Unmarshal([]byte(c.want(http.MethodPost, "/"+kind, c.token, `{}`, http.StatusOK)), &made))
	path = "/" + kind + "/" + made.UpdateID
	var started struct{ Token string }
	harness.Must(c.T, json.Unmarshal([]byte(c.want(http.MethodPost, path, c.token, `{"journalVersion":1}`, http.StatusOK)),
		&started))
	return path, leaseScheme + started.Token
}

// leaseScheme begins the authorization of a lease.
const leaseScheme = "update-token "

// renew renews a lease once a minute, as the stock CLI does, until the function that it returns is called: on a busy
// machine what is written takes longer than a lease lasts. Calls go on with the token of the newest renewal.
func (c *stockClient) renew(path, lease string) (stop func()) {
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() {
		due := time.NewTicker(time.Minute)
		defer due.Stop()
		for {
			select {
			case <-due.C:
				var answer struct{ Token string }
				status, text := c.ask(http.MethodPost, path+"/renew_lease", lease, `{"duration":300}`)
				if status == http.StatusOK && json.Unmarshal([]byte(text), &answer) == nil { // of an ended one it is refused
					next := leaseScheme + answer.Token
					c.renewed.Store(&next)
				}
			case <-ended:
				return
			}
		}
	})
	return func() { close(ended); renewing.Wait(); c.renewed.Store(nil) }
}

// state returns a whole deployment of about so many MiB, which becomes a small object of the bucket unless it is noise.
func (c *stockClient) state(size int) string {
	project, name, _ := strings.Cut(c.stack, "/")
	var resources []string
	value, random := strings.Repeat("v", mib), rand.NewChaCha8([32]byte{8})
	for n := range size {
		if c.noise {
			noise := make([]byte, mib/4*3)
			_, _ = random.Read(noise) // never fails
			value = base64.StdEncoding.EncodeToString(noise)
		}
		resources = append(resources, fmt.Sprintf(`{"urn":"urn:pulumi:%s::%s::t:m:T::r%d","type":"t:m:T","outputs":{"v":%q}}`,
			name, project, n, value))
	}
	return `{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"metadata":{},"resources":[` +
		strings.Join(resources, ",") + `]}`
}

const tooLarge = http.StatusRequestEntityTooLarge

// writeEvents writes many events of a preview, and reads them page by page.
func (c *stockClient) writeEvents() {
	path, lease := c.begin("preview")
	defer c.renew(path, lease)()
	many := func(event string, n int) string { return `{"events":[` + strings.Repeat(event+",", n-1) + event + `]}` }
	c.want(http.MethodPost, path+"/events/batch", lease, many(`{}`, 15*mib/3), tooLarge)
	c.want(http.MethodPost, path+"/events/batch", lease, many(`{"":0}`, 15*mib/7), tooLarge)
	for range size(4, 60) {
		c.want(http.MethodPost, path+"/events/batch", lease, many(`{}`, deployments.MaxBatch), http.StatusNoContent)
	}
	for n := range size(2, 20) {
		c.want(http.MethodPost, path+"/events/batch", lease, fmt.Sprintf(`{"events":[{"sequence":%d,"resOutputsEvent":{"metadata":`+
			`{"new":{"inputs":{"v":%q}}}}}]}`, n+1, strings.Repeat("v", 3*mib)), http.StatusNoContent)
	}
	c.want(http.MethodPost, path+"/complete", lease, `{"status":"succeeded"}`, http.StatusNoContent)
	for token, pages := "", 0; pages < 1000; pages++ {
		var page struct{ ContinuationToken *string }
		harness.Must(c.T, json.Unmarshal([]byte(c.want(http.MethodGet, path+"/events?continuationToken="+token, c.token, "",
			http.StatusOK)), &page))
		if page.ContinuationToken == nil {
			return
		}
		token = *page.ContinuationToken
	}
	c.Error("the events have no end")
}

// writeJournal writes entries that cost little and those that make a large state, and has a worker end the update.
func (c *stockClient) writeJournal() {
	path, lease := c.begin("update")
	defer c.renew(path, lease)()
	entry := func(n int) string { return fmt.Sprintf(`{"kind":2,"sequenceID":%d,"operationID":1}`, n) }
	c.want(http.MethodPatch, path+"/journalentries", lease, `{"entries":[`+strings.Repeat(entry(1)+",", 15*mib/42)+entry(1)+
		`]}`, tooLarge)
	sequence := 0
	for range size(4, deployments.MaxJournalEntries/deployments.MaxBatch-1) {
		var entries []string
		for range deployments.MaxBatch {
			sequence++
			entries = append(entries, entry(sequence))
		}
		c.want(http.MethodPatch, path+"/journalentries", lease, `{"entries":[`+strings.Join(entries, ",")+`]}`,
			http.StatusNoContent)
	}
	project, stack, _ := strings.Cut(c.stack, "/")
	for n := range size(4, 20) {
		sequence++
		c.want(http.MethodPatch, path+"/journalentries", lease, fmt.Sprintf(`{"entries":[{"kind":1,"sequenceID":%d,`+
			`"operationID":%[1]d,"state":{"urn":"urn:pulumi:%s::%s::t:m:T::j%d","type":"t:m:T","outputs":{"v":%q}}}]}`, sequence,
			stack, project, n, strings.Repeat("v", 4*mib)), http.StatusNoContent)
	}
	c.want(http.MethodPost, path+"/complete", lease, `{"status":"failed"}`, http.StatusNoContent)
}

// writeStates writes whole deployments and changes of them, and imports one; each is also answered.
func (c *stockClient) writeStates() {
	large := size(8, 100)
	state := c.state(large)
	path, lease := c.begin("update")
	defer c.renew(path, lease)()
	c.want(http.MethodPatch, path+"/checkpointverbatim", lease, `{"sequenceNumber":1,"untypedDeployment":{"version":3,`+
		`"deployment":`+state+`}}`, http.StatusNoContent)
	changes, exports := size(4, 16), size(3, 8)
	if c.noise { // which takes the machine far longer, and as much memory
		changes, exports = 1, 1
	}
	var changing sync.WaitGroup
	for range changes {
		changing.Go(func() {
			c.want(http.MethodPatch, path+"/checkpointdelta", lease, `{"sequenceNumber":2,"checkpointHash":"x","deploymentDelta":`+
				`[{"Span":{"Start":{"offset":0},"End":{"offset":0}},"NewText":"x"}]}`, http.StatusConflict)
		})
	}
	changing.Wait()
	c.want(http.MethodPost, path+"/complete", lease, `{"status":"failed"}`, http.StatusNoContent)
	for range exports {
		changing.Go(func() {
			c.want(http.MethodGet, "/export", c.token, "", http.StatusOK)
		})
	}
	changing.Wait()
	c.want(http.MethodPost, "/batch-encrypt", c.token, `{"plaintexts":[`+strings.Repeat(`"",`, size(4, 15)*mib/3)+`""]}`,
		http.StatusBadRequest)
	project, stack, _ := strings.Cut(c.stack, "/")
	tiny := fmt.Sprintf(`{"urn":"urn:pulumi:%s::%s::t:m:T::t","type":"t:m:T"}`, stack, project)
	c.want(http.MethodPost, "/import", c.token, `{"version":3,"deployment":{"resources":[`+
		strings.Repeat(tiny+",", 4*deployments.MaxClientResources)+tiny+`]}}`, tooLarge)
}

// written has clients write as much as they may, on several stacks at a time, in each way that there is.
func written(t *testing.T, f *field) {
	a := f.apart()
	worker := a.Workers[0].PID()
	for name, write := range map[string]func(*stockClient){
		"events": (*stockClient).writeEvents, "journals": (*stockClient).writeJournal, "states": (*stockClient).writeStates,
	} {
		t.Run(name, func(t *testing.T) {
			forgetPeak(t, worker)
			a.endure(t, func(context.Context) {
				var writing sync.WaitGroup
				for n := range size(2, 6) {
					c := &stockClient{T: t, api: a.Pulumi, stack: fmt.Sprintf("%s/s%d", name, n), token: "token " + a.flooder,
						noise: n == 1}
					c.create()
					writing.Go(func() { write(c) })
				}
				writing.Wait()
			})
			if now := a.Workers[0].PID(); now != worker {
				t.Fatalf("the worker was process %d and is %d", worker, now)
			}
			if peak := cluster.Peak(worker); peak > largestWorker {
				t.Errorf("the worker took %.0f MiB, more than %d", peak, largestWorker)
			} else {
				t.Logf("the worker took %.0f MiB at most", peak)
			}
		})
	}
}

// slowBodies has an organization begin many large bodies that never end, while another one sends some.
func slowBodies(t *testing.T, f *field) {
	a := f.apart()
	admin := &harness.Tool{Path: a.tool.Path, Dir: a.tool.Dir, Env: a.Env}
	evil := strings.TrimSpace(admin.Must(t, "token", "create", "slow", "--role", "deployer", "--organization", "evil"))
	a.endure(t, func(ctx context.Context) {
		ctx, end := context.WithCancel(ctx)
		var sending sync.WaitGroup
		defer sending.Wait()
		defer end()
		var sent atomic.Int64
		for range size(40, 200) {
			sending.Go(func() {
				for ctx.Err() == nil {
					body := &unfinished{ctx: ctx, zeros: 12 * mib, sent: &sent}
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Pulumi+"/api/stacks/evil/shop/dev/import", body)
					if err != nil {
						t.Error(err)
						return
					}
					r.ContentLength = 48 * mib
					r.Header.Set("Authorization", "token "+evil)
					if answer, err := from("127.0.0.2").Do(r); err == nil {
						_ = answer.Body.Close()
					}
				}
			})
		}
		harness.Eventually(t, "the flood has what it can get", func() bool { return sent.Load() > 128*mib })
		other := &stockClient{T: t, api: a.Pulumi, stack: "watched/dev", token: "token " + a.other}
		slowest := time.Duration(0)
		for range size(3, 30) {
			begun := time.Now()
			other.want(http.MethodPost, "/batch-encrypt", other.token, `{"plaintexts":["`+strings.Repeat("YWFh", mib)+`"]}`,
				http.StatusOK)
			slowest = max(slowest, time.Since(begun))
		}
		t.Logf("slow bodies sent %d MiB; large ones of another organization were answered within %v", sent.Load()/mib,
			slowest)
	})
}
