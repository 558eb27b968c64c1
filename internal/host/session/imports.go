package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/monitor"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/pcl"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"google.golang.org/grpc/status"
)

// An import runs like a program: the host registers the resources of the request with the monitor, epoch after epoch,
// and the core repeats the answers of what was imported before. When all are there, the host writes the text that
// declares them in the program.

// importing is an import at work in one epoch.
type importing struct {
	epoch    *epoch
	monitor  *monitor.Monitor
	language *pluginhost.Language
}

// run registers everything that the request imports. An error that the update's events have already is none of its own.
func (i *importing) run(ctx context.Context) error {
	replies, err := i.registerAll(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case monitor.Reported(err):
		return nil
	case err != nil:
		return &pluginhost.ProgramError{Message: status.Convert(err).Message()}
	}
	request := i.epoch.session.request
	if request.DryRun || len(request.Variables) == 0 {
		return nil
	}
	i.printDeclarations(ctx, replies)
	return nil
}

// registerAll registers each resource as soon as what it refers to has its reply. The replies are in the order of the
// request.
func (i *importing) registerAll(ctx context.Context) ([]engine.Reply, error) {
	stack, err := i.monitor.ImportStack(ctx)
	if err != nil {
		return nil, err
	}
	request := i.epoch.session.request
	done := make(map[urn.URN]chan struct{}, len(request.Imports))
	for _, in := range request.Imports {
		done[in.URN(request.Stack)] = make(chan struct{})
	}
	replies, errs := make([]engine.Reply, len(request.Imports)), make([]error, len(request.Imports))
	var group sync.WaitGroup
	for n, in := range request.Imports {
		group.Go(func() {
			defer close(done[in.URN(request.Stack)])
			for _, needed := range []string{in.Parent, in.Provider} {
				if reply, imported := done[urn.URN(needed)]; imported {
					select {
					case <-reply:
					case <-ctx.Done():
						return
					}
				}
			}
			replies[n], errs[n] = i.monitor.Import(ctx, stack, in)
		})
	}
	group.Wait()
	// An error that nothing has reported yet is the one to return.
	slices.SortStableFunc(errs, func(a, b error) int { return unreported(b) - unreported(a) })
	return replies, firstOf(errs)
}

// unreported is 1 for an error that nothing has reported.
func unreported(err error) int {
	if err == nil || monitor.Reported(err) {
		return 0
	}
	return 1
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// printDeclarations puts the text that declares the imported resources into the event log, in the language of the
// program or, if its language host writes none, as PCL. An error is a warning: the resources are imported.
func (i *importing) printDeclarations(ctx context.Context, replies []engine.Reply) {
	s := i.epoch.session
	var declared []pcl.Resource
	var inputs []engine.Bag
	for n, in := range s.request.Imports {
		reply := replies[n]
		if reply.Result != engine.ResultSuccess || reply.Inputs == nil {
			continue
		}
		values, err := s.values.Decode(ctx, *reply.Inputs)
		if err != nil {
			s.tell(diag.Warning, reply.URN, "its inputs could not be read for the text of the program: "+err.Error())
			continue
		}
		if in.Component && !in.Remote {
			s.tell(diag.Info, reply.URN, "the program declares it with a class of its own; no text is written for it")
			continue
		}
		inputs = append(inputs, *reply.Inputs)
		d := declaration(s.request, in, values)
		if !token.IsProvider(in.Type) {
			d.ID = reply.ID
		}
		declared = append(declared, d)
	}
	if len(declared) == 0 {
		return
	}
	source, text, err := i.program(ctx, declared)
	if err != nil {
		reason := "the language host of " + s.project.Runtime.Name() + " writes no programs"
		if s.project.Runtime.Name() == "" {
			reason = "the project has no runtime"
		}
		if !errors.Is(err, pluginhost.ErrNotGenerated) {
			reason = "no program text could be written (" + strings.TrimSpace(err.Error()) + ")"
		}
		text = "# This is PCL, because " + s.redactor(ctx)(reason) + ".\n" +
			"# pulumi convert --from pcl translates it.\n\n" + source
	}
	s.log.Put(apitype.EngineEvent{Timestamp: int(time.Now().Unix()), StdoutEvent: &apitype.StdoutEngineEvent{
		Message: s.redactor(ctx, inputs...)(text), Color: "never",
	}})
}

// program returns the text that declares resources, as PCL and in the language of the program. If the language host
// does not accept it, properties do not refer to other resources: not every property takes a reference.
func (i *importing) program(ctx context.Context, declared []pcl.Resource) (source, text string, err error) {
	source = pcl.Program(declared)
	text, err = i.language.GenerateProgram(ctx, source)
	if err == nil || errors.Is(err, pluginhost.ErrNotGenerated) {
		return source, text, err
	}
	for n := range declared {
		declared[n].ID = ""
	}
	literals := pcl.Program(declared)
	if text, again := i.language.GenerateProgram(ctx, literals); again == nil {
		return literals, text, nil
	}
	return source, "", err
}

// declaration is what an imported resource looks like in a program.
func declaration(r deployments.UpdateRequest, in deployments.Import, inputs resource.PropertyMap) pcl.Resource {
	return pcl.Resource{
		Variable: r.Variables[string(in.URN(r.Stack))], Name: in.Name, Type: in.Type,
		Inputs: inputs, Parent: r.Variables[in.Parent], Provider: r.Variables[in.Provider], Protect: in.Protect,
	}
}
