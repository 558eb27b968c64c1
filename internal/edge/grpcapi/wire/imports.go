package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// fromImports writes the resources of an import.
func fromImports(imports []deployments.Import) (list []*api.ImportedResource) {
	for _, i := range imports {
		list = append(list, &api.ImportedResource{
			Type: i.Type, Name: i.Name, Id: i.ID, Parent: i.Parent, Provider: i.Provider, Version: i.Version,
			PluginDownloadUrl: i.PluginDownloadURL, Properties: i.Properties, Inputs: i.Inputs,
			Component: i.Component, Remote: i.Remote, Protect: i.Protect,
		})
	}
	return list
}

// toImports reads the resources of an import.
func toImports(list []*api.ImportedResource) (imports []deployments.Import) {
	for _, m := range list {
		imports = append(imports, deployments.Import{
			Type: m.GetType(), Name: m.GetName(), ID: m.GetId(), Parent: m.GetParent(), Provider: m.GetProvider(),
			Version: m.GetVersion(), PluginDownloadURL: m.GetPluginDownloadUrl(), Properties: m.GetProperties(),
			Inputs: m.GetInputs(), Component: m.GetComponent(), Remote: m.GetRemote(), Protect: m.GetProtect(),
		})
	}
	return imports
}
