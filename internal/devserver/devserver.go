package devserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/gofrs/flock"
)

// Options say how to start a service.
type Options struct {
	// Home is the directory of the service; empty is DefaultHome.
	Home string
	// Servers are the servers themselves. Required.
	Servers parts.Servers
	// S3Command is the command line by which this binary calls ServeS3 with that home. Required.
	S3Command func(home string) []string
	// Ports that are not zero take the place of those that the home has kept, from now on.
	Ports Ports
	// NewLog makes the log that writes service.log; nil: lines of text.
	NewLog func(io.Writer) (*slog.Logger, error)
	// Codec gives, for the home's keys, what decodes payloads for the Web UI in the user's browser, by the protocol of
	// Temporal's codec servers; nil for none. Only who may open the Web UI reaches it.
	Codec func(Keys) (http.Handler, error)
}

// Server is a running service. Its fields do not change.
type Server struct {
	Status Status // as at the start; State and TokenFile are what Announce writes
	Keys   Keys
	// Log writes to service.log of the home, for the caller's own parts too, until Close.
	Log *slog.Logger
	// TLS is for servers of the caller: their clients know them by Status.Certificate.
	TLS *tls.Config
	// PulumiAddress is host:port that nobody else is given, for the Pulumi Service API.
	PulumiAddress string

	home     home
	lock     *flock.Flock
	temporal *Temporal
	objects  *s3Child
	logs     []*logFile
	stopUI   func()
	ports    reserved

	closing sync.Once
	err     error
}

// maxGone is how many instances are remembered. What the ones before them did is known to be lost by other ways by now.
const maxGone = 10

// Start starts the service of a home in this process and returns once Temporal, its Web UI and the S3 server answer and
// the namespace and the bucket are there. Others see it as Starting until Announce. ctx is that of the start: the
// service ends by Close alone, which is for when everything of the caller that uses it has ended. Until then nobody
// else gets the home.
//
// Errors to tell apart: *RunningError, *PortTakenError.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if err := DiskFull(opts.Home); err != nil {
		return nil, err
	}
	h, err := openHome(opts.Home)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(ctx, h, lockService, time.Second)
	if errors.Is(err, errHeld) {
		status, err := h.readStatus()
		return nil, errors.Join(err, &RunningError{status})
	}
	if err != nil {
		return nil, err
	}
	s := &Server{home: h, lock: lock}
	if err := s.start(ctx, opts); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, opts Options) error {
	if err := s.claim(opts.NewLog); err != nil {
		return err
	}
	data, err := ensureData(ctx, s.home, opts.Ports, &s.ports)
	if err != nil {
		return err
	}
	ports := data.ports
	if err := awaitPredecessors(ctx, s.home); err != nil {
		return err
	}
	if err := checkPorts(s.home, ports); err != nil {
		return err
	}
	s.Keys, s.Status.TemporalCredentials = data.keys, data.identity.path
	s.TLS, s.Status.Certificate = data.identity.proof(), s.home.certificate()
	s.Status.TemporalAddress, s.Status.Namespace = address(ports.Temporal), Namespace
	s.Status.UIURL = uiURL(s.Status.Instance, ports)
	s.Status.S3Endpoint, s.Status.Bucket = "http://"+address(ports.S3), Bucket
	s.Status.APIAddress, s.PulumiAddress = address(ports.API), address(ports.Pulumi)

	objects := make(chan error, 1)
	go func() { objects <- s.startObjects(ctx, opts) }()
	s.temporal, err = startTemporal(ctx, s.home, data, opts.Servers)
	if err := errors.Join(err, <-objects); err != nil {
		return err
	}
	var codec http.Handler
	if opts.Codec != nil {
		if codec, err = opts.Codec(s.Keys); err != nil {
			return err
		}
	}
	if err := checkPort(s.home, webUI, ports.UI); err != nil {
		return err
	}
	s.stopUI, err = s.startWebUI(data, opts.Servers, codec)
	return err
}

// claim finds out from what the last service left how it ended, and puts this one in its place. The caller holds
// lockService.
func (s *Server) claim(newLog func(io.Writer) (*slog.Logger, error)) error {
	log, err := s.openLog("service.log")
	if err != nil {
		return err
	}
	s.Log = slog.New(slog.NewTextHandler(log, nil))
	if newLog != nil {
		if s.Log, err = newLog(log); err != nil {
			return err
		}
	}
	var before Status
	_, _ = readJSON(s.home.status(), &before) // if it is damaged, heartbeats tell what was lost
	s.Status = Status{
		State:    Starting,
		Home:     string(s.home),
		PID:      os.Getpid(),
		Since:    time.Now().UTC(),
		Instance: strings.ToLower(token(10)),
		Gone:     before.gone(),

		PulumiUsed: before.PulumiUsed,
	}
	s.Log.Info("starting", "pid", s.Status.PID, "instance", s.Status.Instance, "gone", s.Status.Gone)
	return errors.Join(writeJSON(s.home.status(), s.Status), s.home.emptyTrash())
}

// openLog starts a log that Close ends.
func (s *Server) openLog(name string) (*logFile, error) {
	log, err := openLog(s.home, name)
	if err == nil {
		s.logs = append(s.logs, log)
	}
	return log, err
}

func (s *Server) startObjects(ctx context.Context, opts Options) error {
	log, err := s.openLog("s3.log")
	if err != nil {
		return err
	}
	s.objects = &s3Child{argv: opts.S3Command(string(s.home)), log: log, note: s.Log}
	if err := startS3Child(ctx, s.objects, s3Client(s.Status.S3Endpoint, s.Keys)); err != nil {
		return fmt.Errorf("start the S3 server (see %s): %w", log.path, err)
	}
	return nil
}

// data is what a home keeps for good, beside the database and the objects.
type data struct {
	keys     Keys
	ports    Ports
	identity *identity
}

// ensureData makes the data of a home unless it is there. The ports are reserved in r.
func ensureData(ctx context.Context, h home, wanted Ports, r *reserved) (d data, err error) {
	lock, err := acquire(ctx, h, lockHome, startPatience)
	if err != nil {
		return d, fmt.Errorf("make %s: %w", h.data(), err)
	}
	defer func() { _ = lock.Close() }()
	if err := os.MkdirAll(h.temporal(), 0o700); err != nil {
		return d, err
	}
	if d.keys, err = ensureKeys(h); err != nil {
		return d, err
	}
	if d.identity, err = ensureIdentity(h); err != nil {
		return d, err
	}
	d.ports, err = ensurePorts(h, wanted, r)
	return d, err
}

// awaitPredecessors waits until the parts of a service that was killed are gone: its S3 server notices a moment later.
func awaitPredecessors(ctx context.Context, h home) error {
	for _, name := range []string{lockTemporal, lockS3} {
		lock, err := acquire(ctx, h, name, 10*time.Second)
		if err != nil {
			return fmt.Errorf("wait for the %s server of an earlier service in %s to end: %w", name, h, err)
		}
		if err := lock.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Announce tells others that the service is Running, once the caller serves its API on Status.APIAddress; clients find
// a bearer token for it in tokenFile, if it is not empty.
func (s *Server) Announce(tokenFile string) error {
	status := s.Status
	status.State, status.TokenFile = Running, tokenFile
	return writeJSON(s.home.status(), status)
}

// AnnounceEnd tells others that the service is Stopping, once the caller was asked to end.
func (s *Server) AnnounceEnd() error {
	status := s.Status
	status.State = Stopping
	return writeJSON(s.home.status(), status)
}

// Close ends the service and waits until it has ended. Nothing is lost if ctx ends that wait earlier; the process is to
// end then. Every call returns the result of the first.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Do(func() {
		if s.stopUI != nil {
			s.stopUI()
		}
		if s.temporal != nil {
			s.err = s.temporal.Close(ctx)
		}
		if s.objects != nil {
			s.objects.close(ctx)
		}
		for _, log := range s.logs {
			s.err = errors.Join(s.err, log.Close())
		}
		s.ports.release()
		s.err = errors.Join(s.err, s.forget(), s.lock.Close())
	})
	return s.err
}

// forget leaves in the status file nothing but the names of those that are gone, this instance among them, and the
// address where CLIs have logged in.
func (s *Server) forget() error {
	if s.Status.Instance == "" {
		return nil
	}
	return writeJSON(s.home.status(), Status{
		State: Stopped, Gone: s.Status.gone(), PulumiUsed: s.Status.PulumiUsed,
	})
}

// gone are the last instances once this one has ended.
func (s Status) gone() []string {
	all := slices.Clone(s.Gone)
	if s.Instance != "" {
		all = append(all, s.Instance)
	}
	return all[max(0, len(all)-maxGone):]
}
