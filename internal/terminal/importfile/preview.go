package importfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// OfPreview returns a file that lists the resources that a preview would create, with a placeholder for each id. The
// notes say what has to be written into it besides the ids.
func OfPreview(rows []*projection.Row) (f File, notes []string) {
	p := preview{file: File{NameTable: map[string]urn.URN{}}, rows: map[urn.URN]*projection.Row{},
		names: map[urn.URN]string{}, taken: map[string]bool{}}
	for _, row := range rows {
		u := urn.URN(row.URN)
		p.rows[u], p.names[u] = row, p.name(u)
	}
	for _, row := range rows {
		if row.Op == apitype.OpCreate && row.Metadata.New != nil && row.Type != projection.StackType &&
			!isDefault(urn.URN(row.URN)) {
			p.add(row)
		}
	}
	return p.file, p.notes
}

// preview is OfPreview at work.
type preview struct {
	file  File
	rows  map[urn.URN]*projection.Row
	names map[urn.URN]string // each different from the others
	taken map[string]bool
	notes []string
}

// name gives a resource a name that no other one has: its own or, if that is taken, with its type and a number.
func (p *preview) name(u urn.URN) string {
	if !p.taken[u.Name()] {
		return unique(u.Name(), p.taken)
	}
	t := string(u.Type())
	t = t[strings.LastIndex(t, ":")+1:]
	return unique(u.Name()+strings.ToUpper(t[:min(1, len(t))])+t[min(1, len(t)):], p.taken)
}

func (p *preview) add(row *projection.Row) {
	u, made := urn.URN(row.URN), row.Metadata.New
	entry := Resource{Type: row.Type, Name: p.names[u]}
	if entry.Name != u.Name() {
		entry.LogicalName = u.Name()
	}
	if above := urn.URN(made.Parent); above != "" && string(above.QualifiedType()) != projection.StackType {
		entry.Parent = p.refer(above)
	}
	provider, _ := snapshot.SplitReference(made.Provider)
	if provider != "" && !isDefault(provider) {
		entry.Provider = p.refer(provider)
	} else if provider != "" {
		entry.Version, entry.PluginDownloadURL = p.plugin(provider)
	}
	switch {
	case snapshot.IsProvider(u.Type()):
		entry.Version, entry.PluginDownloadURL = p.plugin(u)
		entry.Inputs = p.inputs(row)
	case made.Custom:
		entry.ID = Placeholder
	default:
		entry.Component, entry.Remote = true, provider != ""
	}
	p.file.Resources = append(p.file.Resources, entry)
}

// refer returns the name of a parent or provider; one that is stored goes into the table of names.
func (p *preview) refer(u urn.URN) string {
	name, known := p.names[u]
	if !known {
		name = p.name(u)
		p.names[u] = name
	}
	if row := p.rows[u]; row == nil || row.Op != apitype.OpCreate {
		p.file.NameTable[name] = u
	}
	return name
}

// versioned is how default providers with a version are named.
var versioned = regexp.MustCompile(`^default_([0-9]+)_([0-9]+)_([0-9]+)$`)

// plugin returns the version and download URL of a provider's plugin. The events have only the name of a stored one.
func (p *preview) plugin(u urn.URN) (version, url string) {
	if v := versioned.FindStringSubmatch(u.Name()); v != nil {
		version = strings.Join(v[1:], ".")
	}
	row := p.rows[u]
	if row == nil || row.Metadata.New == nil {
		return version, ""
	}
	if text, ok := row.Metadata.New.Inputs["version"].(string); ok {
		version = text
	}
	internal, _ := row.Metadata.New.Inputs["__internal"].(map[string]any)
	url, _ = internal["pluginDownloadURL"].(string)
	return version, url
}

// inputs returns the configuration of a provider, without what events do not show.
func (p *preview) inputs(row *projection.Row) json.RawMessage {
	shown := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(row.Metadata.New.Inputs)) {
		value := row.Metadata.New.Inputs[key]
		text, err := json.Marshal(value)
		switch {
		case key == "version" || strings.HasPrefix(key, "__"): // the plugin's
		case err != nil, strings.Contains(string(text), redaction.Placeholder),
			strings.Contains(string(text), sig.UnknownStringValue), strings.Contains(string(text), sig.Secret):
			p.notes = append(p.notes, fmt.Sprintf("%s of the provider %s is secret or not known yet; write it into its "+
				"inputs", key, row.Name))
		default:
			shown[key] = value
		}
	}
	if len(shown) == 0 {
		return nil
	}
	text, _ := json.Marshal(shown) // it was JSON before
	return text
}

// isDefault reports whether a URN is of a default provider, which an import makes by itself.
func isDefault(u urn.URN) bool {
	return snapshot.IsProvider(u.Type()) && (u.Name() == "default" || strings.HasPrefix(u.Name(), "default_"))
}
