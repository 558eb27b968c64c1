package pulumiapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// firstBeat and nextBeat are the pauses before the signs of life of a start that is held: proxies cut connections that
// are silent for long, many of them after a minute. The first one says what the start waits for. While that is not
// known, it is put off by reasonEvery, until the start has waited for reasonMost.
const (
	firstBeat, nextBeat     = 5 * time.Second, 15 * time.Second
	reasonEvery, reasonMost = time.Second, 20 * time.Second
)

// hold starts an update. While another update has the stack, or no worker takes it up, the call is held open: after a
// while the answer begins, with a header that says behind whom, and then grows by white space, which JSON allows before
// its value. An informational response (1xx) would keep the status open, but some proxies take it for the answer.
//
// An error after that has no status any more; its text, which is no JSON, fails the client.
func (c *call) hold(id string) (deployments.Leased, error) {
	_ = http.NewResponseController(c.answer).SetReadDeadline(time.Time{}) // else waiting ends with it
	fails := make(chan bool, 1)
	go func() { // the head is read while it is looked for what is to start
		err := panics.Do("looking for the tags of a stack", func() error {
			head, err := c.edge.Service.Head(c.Context(), c.stack)
			fails <- err == nil && failsWhenBusy(head.Tags)
			return nil
		})
		if err != nil {
			fails <- false
		}
	}()
	stop := func() {}
	defer func() { stop() }()
	patience := func() time.Duration {
		most := c.patience()
		if <-fails {
			most = 0
		}
		if most > 0 {
			stop = c.beats()
		}
		return most
	}
	return c.edge.Service.StartUpdate(c.Context(), deployments.StartRequest{Stack: c.stack, ID: id, Patience: patience,
		NoWorker: func(err error) { c.noWorker.Store(&err) },
		By:       deployments.Holder{Token: c.caller.Token, Member: c.caller.Member, Made: c.caller.Made}})
}

// failsWhenBusy reports whether updates of a stack with these tags do not wait for one another.
func failsWhenBusy(tags map[string]string) bool {
	return deployments.OnBusy(tags[deployments.TagOnBusy]) == deployments.OnBusyFail
}

// patience returns how long a start waits for a busy stack. A client shortens that with `Prefer: wait=SECONDS`; one
// that takes no answer in pieces does not wait.
func (c *call) patience() time.Duration {
	if !c.ProtoAtLeast(1, 1) {
		return 0
	}
	for _, header := range c.Header.Values("Prefer") {
		for part := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			seconds, err := strconv.Atoi(value)
			if strings.EqualFold(name, "wait") && err == nil && seconds >= 0 {
				return min(time.Duration(min(seconds, 1<<20))*time.Second, deployments.LeasePatience)
			}
		}
	}
	return deployments.LeasePatience
}

// beats sends signs of life until stop returns.
func (c *call) beats() (stop func()) {
	ctx, cancel := context.WithCancel(c.Context())
	over := make(chan struct{})
	since := time.Now()
	go func() {
		defer close(over)
		timer := time.NewTimer(c.edge.firstBeat)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
				if !c.begun && !c.warn(ctx) && time.Since(since) < reasonMost {
					timer.Reset(c.edge.reasonEvery)
					continue
				}
				if ctx.Err() != nil { // the start has ended meanwhile: it waits for nothing, and its answer has a status
					c.answer.Header().Del(warningHeader)
					return
				}
				c.beat()
				timer.Reset(c.edge.nextBeat)
			}
		}
	}()
	return func() { cancel(); <-over }
}

// warn sets the header that says what the start waits for, if that is known.
func (c *call) warn(ctx context.Context) (known bool) {
	if noWorker := c.noWorker.Load(); noWorker != nil {
		c.answer.Header().Set(warningHeader, clean((*noWorker).Error()))
	} else if info, err := c.edge.Service.Stack(ctx, c.stack); err == nil {
		c.warnBusy(info)
	}
	return c.answer.Header().Get(warningHeader) != ""
}

// beat begins the answer, or lets it grow.
func (c *call) beat() {
	if !c.begun {
		c.answer.Header().Set("Content-Type", "application/json")
		c.answer.Header().Set("X-Accel-Buffering", "no") // of nginx
		c.answer.WriteHeader(http.StatusOK)
		c.begun = true
	}
	_, _ = io.WriteString(c.answer, " ") // its reader may have gone
	_ = http.NewResponseController(c.answer).Flush()
}

// finish ends an answer that has begun.
func (c *call) finish(status int, answer any, data []byte) {
	if e, failed := answer.(apitype.ErrorResponse); failed && status != http.StatusOK {
		data = []byte("error " + strconv.Itoa(status) + ": " + e.Message)
	}
	_, _ = c.answer.Write(data) // its reader may have gone
}
