package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// State is how far a service has come.
type State string

// The states of a service.
const (
	Stopped  State = "stopped"  // no process has the home
	Starting State = "starting" // a process has it, and not everything answers yet
	Running  State = "running"  // everything answers, the caller's API included
	// it was asked to end, and finishes what it was doing; it has the home until it has ended
	Stopping State = "stopping"
)

// Status is what is known of the service of a home. Addresses are those of the service that runs or starts, and empty
// otherwise.
type Status struct {
	State    State     `json:"state"`
	Home     string    `json:"home"`
	PID      int       `json:"pid,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Instance string    `json:"instance,omitempty"` // new at every start

	TemporalAddress string `json:"temporalAddress,omitempty"` // host:port
	// TemporalCredentials is the path of what a client of Temporal must show: the certificate, its key and its
	// authority, in one PEM file.
	TemporalCredentials string `json:"temporalCredentials,omitempty"`
	Namespace           string `json:"namespace,omitempty"`
	UIURL               string `json:"uiURL,omitempty"`      // another one at each start
	S3Endpoint          string `json:"s3Endpoint,omitempty"` // URL
	Bucket              string `json:"bucket,omitempty"`
	APIAddress          string `json:"apiAddress,omitempty"` // host:port, for the caller's API
	// Certificate is the path of the certificate (PEM) that the API shows, and no other server has.
	Certificate string `json:"certificate,omitempty"`
	TokenFile   string `json:"tokenFile,omitempty"` // path of a file with a bearer token for the API
	// PulumiAddress is host:port of the Pulumi Service API, by which the stock CLI logs in; empty if it is not served.
	// PulumiTokenFile is the path of a file with a token for it, which is good until the service ends.
	PulumiAddress   string `json:"pulumiAddress,omitempty"`
	PulumiTokenFile string `json:"pulumiTokenFile,omitempty"`
	// PulumiProblem says why it is not served, or what a user of the stock CLI must know.
	PulumiProblem string `json:"pulumiProblem,omitempty"`
	// PulumiUsed is the last PulumiAddress of this home; CLIs have logged in there.
	PulumiUsed string `json:"pulumiUsed,omitempty"`
	// ConsoleAddress is host:port where the stock CLI finds the console of that address; empty if it is not served.
	ConsoleAddress string `json:"consoleAddress,omitempty"`

	// Died says of a stopped service that it did not end cleanly: it was killed, or the machine went down.
	Died bool `json:"died,omitempty"`

	// Gone are the last instances before this one, oldest first: whatever they were doing when they ended or died, they
	// are doing it no more.
	Gone []string `json:"gone,omitempty"`
}

// ErrNotRunning says that no process has the home.
var ErrNotRunning = errors.New("the service is not running")

// RunningError says that a process has the home already.
type RunningError struct{ Status Status }

func (e *RunningError) Error() string {
	if e.Status.PID == 0 {
		return fmt.Sprintf("a service is starting or ending in %s: try again", e.Status.Home)
	}
	return fmt.Sprintf("a service is running in %s: process %d, since %s; stop it with `deployctl dev stop`",
		e.Status.Home, e.Status.PID, e.Status.Since.Local().Format(time.DateTime))
}

// ReadStatus tells whether a service has the home, and which. It makes nothing and asks nobody; an empty path is the
// default home.
func ReadStatus(path string) (Status, error) {
	h, err := findHome(path)
	if err != nil {
		return Status{}, err
	}
	return h.readStatus()
}

func (h home) readStatus() (Status, error) {
	running, err := held(h, lockService)
	if err != nil {
		return Status{State: Stopped, Home: string(h)}, err
	}
	var s Status
	_, err = readJSON(h.status(), &s)
	if !running { // a clean end leaves no instance in the file
		return Status{State: Stopped, Home: string(h), Died: s.Instance != ""}, nil
	}
	if err != nil {
		return s, err
	}
	// Between taking the lock and writing the file, the file may still be a dead predecessor's.
	if !hasLocked(s.PID, filepath.Join(h.locks(), lockService)) {
		s = Status{State: Starting}
	}
	s.Home = string(h)
	return s, nil
}

// Stop asks the service of a home to end and waits until it has; ErrNotRunning if there is none. Running work is not
// lost: it goes on at the next start.
func Stop(ctx context.Context, path string) error {
	h, err := findHome(path)
	if err != nil {
		return err
	}
	for asked := 0; ; {
		s, err := h.readStatus()
		switch {
		case err != nil:
			return err
		case s.State == Stopped && asked == 0:
			return ErrNotRunning
		case s.State == Stopped || asked != 0 && s.PID != 0 && s.PID != asked:
			return nil
		case asked == 0 && s.PID != 0:
			process, err := os.FindProcess(s.PID)
			if err == nil {
				err = askToEnd(process)
			}
			if err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("stop process %d: %w", s.PID, err)
			}
			asked = s.PID
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d was asked to end and has not yet (killing it loses nothing): %w", s.PID,
				ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}

// Reset removes everything a home keeps, its keys and ports included; a *RunningError while something of it runs. Logs
// stay.
func Reset(path string) error {
	h, err := findHome(path)
	if err != nil || !exists(string(h)) {
		return err
	}
	for _, name := range []string{lockService, lockTemporal, lockS3, lockHome} {
		lock, err := acquire(context.Background(), h, name, time.Second)
		if errors.Is(err, errHeld) {
			s, err := h.readStatus()
			return errors.Join(err, &RunningError{s})
		}
		if err != nil {
			return err
		}
		defer func() { _ = lock.Close() }()
	}
	return h.emptyTrash(h.data(), h.status())
}

// emptyTrash removes what an interrupted Reset left, and files, each all at once. The caller holds lockService.
func (h home) emptyTrash(files ...string) error {
	if err := os.RemoveAll(h.trash()); err != nil {
		return err
	}
	for _, file := range files {
		if err := os.Rename(file, h.trash()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.RemoveAll(h.trash()); err != nil {
			return err
		}
	}
	return nil
}
