package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/worker"
)

// start prepares a serve or a worker until it can begin to work. Everything that could prevent that is opened here, for
// --check as for a real start, so that both find the same. It continues after a fault, so that all are reported at
// once.
type start struct {
	*console.Env
	settings settings.Settings
	in       infrastructure
	health   net.Listener     // nil without one
	setUp    bool             // an empty bucket is set up
	node     *node            // nil if the settings, Temporal or S3 have a fault
	faults   []error          // of settings
	found    []worker.Finding // of everything else
	opened   []func()         // what close closes, in reverse
}

// silence is how long Temporal and S3 may take to answer at the start before a warning is logged.
const silence = 3 * time.Second

// newStart reads the settings of serve and worker, and opens the addresses for metrics and health checks.
func newStart(s *console.Env, loaded settings.Settings) *start {
	o := &start{Env: s, settings: loaded}
	log, err := newLog(s.Err, loaded)
	o.setting(err)
	in, err := infrastructureOf(loaded, log)
	o.setting(err)
	o.in = in
	o.in.metrics, err = openExporter(loaded, o.in.log)
	o.address("metrics", loaded.Get(settings.Metrics), err)
	o.opened = append(o.opened, o.in.metrics.close)
	o.health, err = openHealth(loaded)
	o.address("health checks", loaded.Get(settings.Health), err)
	o.closes(o.health)
	return o
}

// setting adds faults of settings: nil, an error, or several that were joined.
func (o *start) setting(err error) {
	var joined interface{ Unwrap() []error }
	switch {
	case errors.As(err, &joined):
		for _, one := range joined.Unwrap() {
			o.setting(one)
		}
	case err != nil:
		o.faults = append(o.faults, err)
	}
}

// add adds a finding.
func (o *start) add(what, said string, err error) {
	o.found = append(o.found, worker.Finding{What: what, Detail: said, Err: err})
}

// warn adds a finding that does not prevent the start.
func (o *start) warn(what string, err error) {
	o.found = append(o.found, worker.Finding{What: what, Err: err, Tolerable: true})
}

// address adds whether an address could be opened; one that is not set is not reported.
func (o *start) address(what, address string, err error) {
	if address != "" || err != nil {
		o.add(what, address, err)
	}
}

func (o *start) closes(listener net.Listener) {
	if listener != nil {
		o.opened = append(o.opened, func() { _ = listener.Close() }) // its server may have closed it
	}
}

// stand adds the faults of the settings to the findings or, if there are none, connects to Temporal and S3. With look
// it writes nothing.
func (o *start) stand(ctx context.Context, look bool) {
	var wrong []worker.Finding
	for _, fault := range o.faults {
		wrong = append(wrong, worker.Finding{What: "settings", Err: fault})
	}
	if len(wrong) > 0 {
		o.found = append(wrong, o.found...)
		return
	}
	o.found = slices.Insert(o.found, 0, worker.Finding{What: "settings", Detail: o.settings.File()})
	waiting := time.AfterFunc(silence, func() {
		o.in.log.Warn("waiting for Temporal and S3 to answer; --check shows which one does not",
			"temporal", o.in.temporal.address, "bucket", o.in.s3.bucket, "s3", o.in.s3.endpoint)
	})
	defer waiting.Stop()
	config := o.in.config()
	config.Patience, config.ReadOnly, config.SetUp = patience(look), look, o.setUp
	connection, found := worker.Examine(ctx, config)
	o.found = append(o.found, found...)
	if connection == nil {
		return
	}
	o.node = newNode(ctx, o.in, connection)
	o.opened = append(o.opened, o.node.close)
}

func (o *start) close() {
	for _, closes := range slices.Backward(o.opened) {
		closes()
	}
}

// begins reports whether the process should begin its work: not after a fault, and not for --check, which prints the
// findings.
func (o *start) begins(check bool) (bool, error) {
	if check {
		return false, o.check()
	}
	err := o.earnest()
	return err == nil, err
}

// failed returns the findings that prevent the start.
func (o *start) failed() []worker.Finding {
	return slices.DeleteFunc(slices.Clone(o.found), func(f worker.Finding) bool { return f.Err == nil || f.Tolerable })
}

// earnest logs the tolerable findings, and returns an error with all findings that prevent the start.
func (o *start) earnest() error {
	for _, f := range o.found {
		if f.Err != nil && f.Tolerable {
			o.in.log.Warn("this should be fixed: "+f.What, "error", f.Err)
		}
	}
	failed := o.failed()
	switch len(failed) {
	case 0:
		return nil
	case 1:
		return failed[0].Err
	}
	var text strings.Builder
	for _, f := range failed {
		fmt.Fprintf(&text, "\n  %s: %v", f.What, f.Err)
	}
	return deployments.Errorf(deployments.CodeOf(failed[0].Err), "the process cannot start, for %d reasons:%s",
		len(failed), text.String())
}
