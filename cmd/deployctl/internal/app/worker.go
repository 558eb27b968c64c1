package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/worker"
	"github.com/urfave/cli/v2"
)

func workerCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "worker", Usage: "run updates, with your own Temporal cluster and S3 bucket",
		Flags: append([]cli.Flag{settingsFlag, checkFlag, organizationsFlag},
			console.SettingFlags(settings.ForService, settings.ForEach)...),
		Action: func(c *cli.Context) error {
			loaded, err := console.LoadSettings(s, c)
			if err != nil {
				return err
			}
			ctx, cancel := untilInterrupted(c.Context, s)
			defer cancel()
			o := newStart(s, loaded)
			o.in.organizations = c.StringSlice(organizationsFlag.Name)
			return work(ctx, o, c.Bool(checkFlag.Name))
		},
	}
}

// organizationsFlag is a flag only, not a setting: a worker whose configuration file was lost would otherwise run the
// programs of all organizations.
var organizationsFlag = &cli.StringSliceFlag{
	Name: "organization", Usage: "run only the updates of the organization `NAME`, which then run on no other " +
		"workers; may be repeated",
}

// work executes updates until ctx ends; with check it returns before it begins.
func work(ctx context.Context, o *start, check bool) error {
	defer o.close()
	o.in.heap = heapLimit(o.Env, leastOfWorker, math.MaxInt64)
	for _, organization := range o.in.organizations {
		o.setting(deployments.ValidateName("organization", organization))
	}
	o.openPlace()
	o.openTracing("deployctl-worker")
	o.stand(ctx, check)
	if begins, err := o.begins(check); !begins {
		return err
	}
	o.node.readiness.alsoNeeds(func() error { return diskFull(o.in.dir) })
	o.in.metrics.disk(o.in.dir)
	return together(ctx,
		o.node.work,
		o.node.readiness.watch,
		func(ctx context.Context) error { return o.node.readiness.serveHealth(ctx, o.health) },
		func(ctx context.Context) error { return o.in.metrics.serve(ctx, o.node.readiness) })
}

// openPlace creates the sandbox of programs and the directory of their files.
func (o *start) openPlace() {
	hide := slices.Concat(secretFiles(o.settings), cloudFiles(), stockTokens())
	if home, err := devserver.DefaultHome(); err == nil { // of an embedded service of this user
		hide = append(hide, home)
	}
	worker.SecureVolumes()
	policy, warnings, err := newSandbox(o.settings, sandbox.Options{Hide: hide,
		Several: len(o.in.organizations) != 1})
	if err != nil {
		o.add("sandbox", "", err)
		return
	}
	o.in.sandbox = policy
	o.add("sandbox", string(policy.Mode()), nil)
	for _, warning := range warnings {
		o.warn("sandbox", errors.New(warning))
	}
	dir, remove, err := worker.TemporaryDir(policy)
	o.add("files of programs", dir, err)
	if err != nil {
		return
	}
	if shared := policy.Above(dir); shared != "" {
		o.warn("files of programs", fmt.Errorf("programs of all organizations may put files into %s (%s), above the "+
			"programs of others in %s, whose tools would use them (node_modules, go.work): share a directory below it, or "+
			"set TMPDIR to one elsewhere", shared, settings.SandboxShared, dir))
	}
	o.in.dir = dir
	o.opened = append(o.opened, remove)
	if err := diskFull(dir); err != nil {
		o.warn("files of programs", err)
	}
}

// diskFull returns an error if the worker cannot store the files of programs, because the disk of their directory is
// full.
func diskFull(dir string) error {
	if why := devserver.Full(dir); why != "" {
		return deployments.Errorf(deployments.CodeUnavailable, "the worker cannot store the files of programs: the "+
			"disk of %s %s; the worker continues by itself once there is space", dir, why)
	}
	return nil
}
