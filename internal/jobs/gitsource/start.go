package gitsource

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
)

// endPatience is how long the output of a process is read after its end.
const endPatience = 5 * time.Second

// Service is what packing needs of the service.
type Service interface {
	deployments.Bundles
	Decrypt(ctx context.Context, s deployments.StackName, sealed []string) ([]string, error)
}

// Starter starts the process.
type Starter struct {
	Box *sandbox.Box
	// Env is the whole environment of the process.
	Env []string
	// Said is called with each line of progress; not concurrently.
	Said func(line string)
}

// Fetch gets the files of a commit.
func (s Starter) Fetch(ctx context.Context, o FetchOrder) (Fetched, error) {
	m, err := s.run(ctx, Order{Fetch: &o}, func(message) answer {
		return answer{Code: deployments.CodeInvalid, Error: "nothing can be called while a repository is fetched"}
	})
	return m.Fetched, err
}

// Pack reads and uploads a project.
func (s Starter) Pack(ctx context.Context, o PackOrder, service Service) (Packed, error) {
	m, err := s.run(ctx, Order{Pack: &o}, func(m message) answer {
		texts, err := serve(ctx, m, o.Stack, service)
		if err != nil {
			return answer{Code: deployments.CodeOf(err), Error: err.Error()}
		}
		return answer{Texts: texts}
	})
	return m.Packed, err
}

// serve answers a call of the process. Its repository has an author who may want to harm: what it sends is checked as
// that of any client.
func serve(ctx context.Context, m message, stack deployments.StackName, service Service) ([]string, error) {
	var manifest deployments.Manifest
	if m.Call == callMissing || m.Call == callPutManifest {
		if err := json.Unmarshal(m.File, &manifest); err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "the list of the project's files cannot be read: %w", err)
		}
		if err := manifest.Validate(); err != nil {
			return nil, err
		}
	}
	switch m.Call {
	case callDecrypt:
		return service.Decrypt(ctx, stack, m.Texts)
	case callMissing:
		return service.Missing(ctx, stack, manifest)
	case callPutManifest:
		bundle, err := service.PutManifest(ctx, stack, manifest)
		return []string{bundle}, err
	case callPutFile:
		if len(m.Texts) == 1 && len(m.File) <= deployments.MaxFile {
			return nil, service.PutFile(ctx, stack, m.Texts[0], m.File)
		}
	}
	return nil, deployments.Errorf(deployments.CodeInvalid, "there is no such call")
}

// run starts the process, gives it an order, and answers its calls until its result.
func (s Starter) run(ctx context.Context, o Order, answers func(message) answer) (m message, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	self, err := process.Self()
	if err != nil {
		return m, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args, cmd.Env, cmd.WaitDelay = []string{Name}, s.Env, endPatience
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return m, err
	}
	defer func() { _ = in.Close() }()
	out, output := io.Pipe()
	said, stderr := io.Pipe()
	cmd.Stdout, cmd.Stderr = output, stderr
	launch, err := s.Box.Prepare(cmd)
	if err == nil {
		err = launch.Start(cmd, cmd.Start)
	}
	if err != nil {
		return m, fmt.Errorf("start the process that gets the program: %w", err)
	}
	read := make(chan struct{})
	go func() { defer close(read); process.Lines(said, s.Said) }()
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		s.Box.Ended(cmd.Process.Pid)
		_ = errors.Join(output.Close(), stderr.Close()) // wakes the readers
		ended <- err
	}()
	m, err = converse(o, io.LimitReader(out, deployments.MaxBundle+deployments.MaxFile), in, answers)
	cancelled := ctx.Err()
	cancel() // it has nothing more to do
	_ = out.CloseWithError(errors.New("nothing more is read"))
	exit := <-ended
	<-read
	switch {
	case cancelled != nil:
		return m, context.Cause(ctx)
	case err != nil:
		return m, deployments.Errorf(deployments.CodeUnavailable, "the process that gets the program ended (%v): %w", exit,
			err)
	}
	return m, errorOf(m.Code, m.Error)
}

// maxMessage limits one message of the process: a file, or the list of all files, and what is around it.
const maxMessage = deployments.MaxFile + 1<<20

// converse sends an order and answers calls until the result.
func converse(o Order, from io.Reader, to io.Writer, answers func(message) answer) (m message, err error) {
	limited := &io.LimitedReader{R: from}
	in, out := gob.NewDecoder(limited), gob.NewEncoder(to)
	if err := out.Encode(o); err != nil {
		return m, err
	}
	for {
		limited.N = maxMessage // the process says nothing more before it is answered
		m = message{}
		if err := in.Decode(&m); err != nil || m.Call == "" {
			return m, err
		}
		if err := out.Encode(answers(m)); err != nil {
			return m, err
		}
	}
}
