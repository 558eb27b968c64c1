package scenario

import (
	"fmt"

	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// registerPackage registers a package for the option "package".
type registerPackage struct {
	Name    string `yaml:"package"`
	Plugin  string `yaml:"plugin"`
	Version string `yaml:"version"`
	// Extension is a parameter that adds to the plugin's own package, and Parameter one that gives another package.
	Extension *parameter `yaml:"extension"`
	Parameter *parameter `yaml:"parameter"`
}

// parameter is a parameter of a package.
type parameter struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
	Value   string `yaml:"value"`
}

func (r *registerPackage) play(p *player) error {
	req := &rpc.RegisterPackageRequest{Name: r.Plugin, Version: r.Version}
	if e := r.Extension; e != nil {
		req.Extension = &rpc.Parameterization{Name: e.Name, Version: e.Version, Value: []byte(e.Value)}
	}
	if w := r.Parameter; w != nil {
		req.Parameterization = &rpc.Parameterization{Name: w.Name, Version: w.Version, Value: []byte(w.Value)}
	}
	res, err := p.monitor.RegisterPackage(p.ctx, req)
	if err != nil {
		return fmt.Errorf("package %s: %w", r.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.packages == nil {
		p.packages = map[string]string{}
	}
	p.packages[r.Name] = res.GetRef()
	return nil
}
