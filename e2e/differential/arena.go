package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// openArena starts deployctl's embedded service and prepares Pulumi's engine, both with the binaries of a directory.
// States is the directory for the states of every update; "" for none.
func openArena(ctx context.Context, bin, states string, cli bool) (a *arena, err error) {
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	a = &arena{cli: cli, states: states}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.dir, err = os.MkdirTemp("", "deployctl-differential-"); err != nil {
		return a, err
	}
	env := environment(a.dir, bin)
	if a.clouds, err = openClouds(); err != nil {
		return a, err
	}
	a.checker = &stockEngine{binary: filepath.Join(bin, "stockengine"), env: env}
	a.stock = a.checker
	a.service, err = startEmbedded(ctx, filepath.Join(bin, "deployctl"), a.dir, env)
	if err != nil {
		return a, err
	}
	a.ours = a.service
	if cli {
		pulumi, err := exec.LookPath("pulumi")
		if err != nil {
			return a, err
		}
		a.ours = &executable{path: filepath.Join(bin, "deployctl"), env: env}
		a.stock = &executable{path: pulumi, env: env, stock: true}
	}
	return a, nil
}

func (a *arena) close() {
	if a.service != nil {
		_ = a.service.close() // its home is removed in any case
	}
	if a.checker != nil {
		a.checker.close()
	}
	if a.clouds != nil {
		a.clouds.close()
	}
	if a.dir != "" {
		_ = os.RemoveAll(a.dir)
	}
}

// environment is that of both engines, in a home of its own.
func environment(dir, bin string) (env []string) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "PATH" && !strings.HasPrefix(name, "DEPLOYCTL") && !strings.HasPrefix(name, "PULUMI_") &&
			!strings.HasPrefix(name, "AWS_") {
			env = append(env, variable)
		}
	}
	return append(env, "NO_COLOR=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"PULUMI_HOME="+filepath.Join(dir, "pulumi"), "PULUMI_BACKEND_URL=file://"+dir, "PULUMI_CONFIG_PASSPHRASE=open",
		"PULUMI_SKIP_UPDATE_CHECK=true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true")
}
