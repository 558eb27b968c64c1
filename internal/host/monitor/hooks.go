package monitor

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// maxHooks bounds the hooks of a program, longestHookName their names in bytes.
const maxHooks, longestHookName = 10_000, 1 << 10

// hookWait is how long a hook that an earlier start of the program had registered is waited for.
const hookWait = 2 * time.Minute

// ErrUnregisteredHook is the error about a hook that the program has not registered.
var ErrUnregisteredHook = status.Error(codes.NotFound, "the program has not registered it")

// Hooks are the functions that the program has registered to run around steps. A session has one, because a step may
// outlive the start of the program that asked for it: then the next start registers the hook again. It is safe for
// concurrent use.
type Hooks struct {
	mu      sync.Mutex
	program *hookedProgram // nil while none runs
	changed chan struct{}  // closed at the next change
}

// hookedProgram is one start of the program.
type hookedProgram struct {
	epoch     int
	callbacks *callbacks
	steps     map[string]*Hook // by name
	errors    map[string]*Hook // error hooks, by name
	sealed    bool             // it registers no more
}

// Hook is a function of a program that runs.
type Hook struct {
	OnDryRun     bool // it runs in previews, too
	IgnoreErrors bool // an error is a warning
	callback     *pulumirpc.Callback
	program      *hookedProgram
}

// AcceptsByteString reports whether the program reads strings that are not UTF-8.
func (h *Hook) AcceptsByteString() bool { return h.callback.GetAcceptsByteString() }

// Call calls the function.
func (h *Hook) Call(ctx context.Context, request, response proto.Message) error {
	return h.program.callbacks.invoke(ctx, h.callback, request, response)
}

// signal wakes everybody who waits for a change; h.mu is held.
func (h *Hooks) signal() {
	if h.changed != nil {
		close(h.changed)
	}
	h.changed = make(chan struct{})
}

// begin notes that a start of the program begins.
func (h *Hooks) begin(epoch int, c *callbacks) *hookedProgram {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.program = &hookedProgram{epoch: epoch, callbacks: c, steps: map[string]*Hook{}, errors: map[string]*Hook{}}
	h.signal()
	return h.program
}

// end notes that a start of the program has ended.
func (h *Hooks) end(p *hookedProgram) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.program == p {
		h.program = nil
		h.signal()
	}
}

// seal notes that the program registers no more hooks. It reports whether it has registered any.
func (h *Hooks) seal(p *hookedProgram) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.sealed = true
	h.signal()
	return len(p.steps)+len(p.errors) > 0
}

// register adds a hook to those of its kind.
func (h *Hooks) register(hooks map[string]*Hook, name string, hook *Hook) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case name == "":
		return status.Error(codes.InvalidArgument, "a hook needs a name")
	case len(name) > longestHookName:
		return status.Errorf(codes.InvalidArgument, "the name of the hook %.40q… has more than %d bytes", name,
			longestHookName)
	case hooks[name] != nil:
		return status.Errorf(codes.AlreadyExists, "the program registers two hooks of the name %q; rename one", name)
	case len(hooks) >= maxHooks:
		return status.Errorf(codes.ResourceExhausted, "the program registers more than %d hooks", maxHooks)
	}
	hooks[name] = hook
	h.signal()
	return nil
}

// Find returns the hook of a command. It waits until the program runs; and, if the program was started again, until it
// has registered what the earlier start had registered, for at most hookWait.
func (h *Hooks) Find(ctx context.Context, c engine.Hook) (*Hook, error) {
	patience := time.NewTimer(hookWait)
	defer patience.Stop()
	for {
		hook, changed, err := h.look(c)
		if hook != nil || err != nil {
			return hook, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience.C:
			if h.running() {
				return nil, ErrUnregisteredHook
			}
			patience.Reset(hookWait)
		}
	}
}

// look returns the hook of a command, or else what to wait for.
func (h *Hooks) look(c engine.Hook) (hook *Hook, changed <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	p := h.program
	if p == nil {
		return nil, h.changed, nil
	}
	named := p.steps
	if c.Point == engine.OnError {
		named = p.errors
	}
	if hook = named[c.Name]; hook == nil && (p.sealed || p.epoch == 1) {
		return nil, nil, ErrUnregisteredHook
	}
	return hook, h.changed, nil
}

func (h *Hooks) running() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.program != nil
}

// AwaitEnd waits until the start of the program that has registered a hook has ended.
func (h *Hooks) AwaitEnd(ctx context.Context, of *Hook) error {
	for {
		h.mu.Lock()
		ended, changed := h.program != of.program, h.changed
		h.mu.Unlock()
		if ended {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RegisterResourceHook registers a function that runs before or after steps of the resources that name it.
func (m *Monitor) RegisterResourceHook(
	ctx context.Context, req *pulumirpc.RegisterResourceHookRequest,
) (*emptypb.Empty, error) {
	return m.registerHook(ctx, m.hooked.steps, req.GetName(), &Hook{
		OnDryRun: req.GetOnDryRun(), IgnoreErrors: req.GetIgnoreErrors(), callback: req.GetCallback(),
	})
}

// RegisterErrorHook registers a function that is asked whether a step that failed is to be repeated.
func (m *Monitor) RegisterErrorHook(
	ctx context.Context, req *pulumirpc.RegisterErrorHookRequest,
) (*emptypb.Empty, error) {
	return m.registerHook(ctx, m.hooked.errors, req.GetName(), &Hook{callback: req.GetCallback()})
}

// registerHook registers a hook.
func (m *Monitor) registerHook(
	ctx context.Context, hooks map[string]*Hook, name string, hook *Hook,
) (*emptypb.Empty, error) {
	hook.program = m.hooked
	err := m.callbacks.check(hook.callback)
	if err == nil {
		err = m.hooks.register(hooks, name, hook)
	}
	if err != nil {
		return m.refuseFeature(ctx, err)
	}
	return &emptypb.Empty{}, nil
}

// SignalAndWaitForShutdown returns when no hook of the program is needed any more; at once if it has none.
func (m *Monitor) SignalAndWaitForShutdown(ctx context.Context, _ *emptypb.Empty) (*emptypb.Empty, error) {
	if m.hooks.seal(m.hooked) {
		// An error means that the update has ended, and so may the program.
		_, _ = m.call(ctx, func(epoch, seq int) deployments.Message {
			return deployments.Message{Waits: &engine.ProgramWaits{Epoch: epoch, Seq: seq}}
		})
	}
	return &emptypb.Empty{}, nil
}

// readHooks returns the hooks that a registration names.
func readHooks(b *pulumirpc.RegisterResourceRequest_ResourceHooksBinding) engine.Hooks {
	var hooks engine.Hooks
	for point, names := range map[engine.HookPoint][]string{
		engine.BeforeCreate: b.GetBeforeCreate(), engine.AfterCreate: b.GetAfterCreate(),
		engine.BeforeUpdate: b.GetBeforeUpdate(), engine.AfterUpdate: b.GetAfterUpdate(),
		engine.BeforeDelete: b.GetBeforeDelete(), engine.AfterDelete: b.GetAfterDelete(),
		engine.OnError: b.GetOnError(),
	} {
		if len(names) == 0 {
			continue
		}
		if hooks == nil {
			hooks = engine.Hooks{}
		}
		hooks[point] = names
	}
	return hooks
}
