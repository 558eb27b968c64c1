package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// view is a state or a cloud without what differs between two runs of the same engine: ids that are made at random,
// times, and the address of the cloud.
type view struct {
	resources []map[string]any
	pending   []string
	objects   []string
}

// random are the texts that are made anew in each run: ids of providers and of servers, names from autonaming, keys
// that are made of ids.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|` +
	`\b(?:server|tagged|opaque)-[a-z2-7]{12}\b|\b[a-z0-9-]+-[0-9a-f]{7}\b|\bAK[0-9a-f]{32}\b`)

// normaliser replaces random texts by the number of their first appearance, so that it still shows where two are the
// same.
type normaliser struct {
	cloud string
	known map[string]string
}

func (n *normaliser) text(s string) string {
	return random.ReplaceAllStringFunc(strings.ReplaceAll(s, n.cloud, "CLOUD"), func(found string) string {
		if found == plugin.UnknownStringValue {
			return "UNKNOWN"
		}
		if n.known[found] == "" {
			n.known[found] = fmt.Sprintf("<%d>", len(n.known)+1)
		}
		return n.known[found]
	})
}

// json returns a value's JSON, normalised.
func (n *normaliser) json(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error() // it came from JSON
	}
	return n.text(string(text))
}

// rank orders objects: what the state does not know has an id at random, by which it must not be numbered.
func (n *normaliser) rank(o fakecloud.Object) string {
	return random.ReplaceAllStringFunc(jsonText(o), func(found string) string { return n.known[found] })
}

// volatile are the fields of a resource that no two runs have in common.
var volatile = []string{"created", "modified", "sourcePosition", "stackTrace"}

// look makes a view. Where order means nothing, resources are sorted first.
func look(state apitype.DeploymentV3, objects []fakecloud.Object, cloud string, ordered bool) (v view, err error) {
	n := &normaliser{cloud: cloud, known: map[string]string{}}
	resources := slices.Clone(state.Resources)
	for i := range resources {
		resources[i].Dependencies = slices.Clone(resources[i].Dependencies)
	}
	if !ordered {
		slices.SortStableFunc(resources, func(a, b apitype.ResourceV3) int {
			return strings.Compare(rank(a), rank(b))
		})
	}
	resources = besideOwners(resources)
	// What one engine may not know changes no number of anything else: outputs of components, and ids of what is read,
	// come last.
	for _, r := range resources {
		if !r.External {
			n.text(string(r.ID))
		}
	}
	for _, r := range resources {
		if r.Custom && !r.External {
			n.json(r)
		}
	}
	for _, r := range resources {
		fields := map[string]any{}
		slices.Sort(r.Dependencies) // a set: its order means nothing
		text := n.json(r)
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			return v, err
		}
		for _, field := range volatile {
			delete(fields, field)
		}
		v.resources = append(v.resources, fields)
	}
	for _, o := range state.PendingOperations {
		v.pending = append(v.pending, fmt.Sprint(o.Type, " ", o.Resource.URN))
	}
	slices.Sort(v.pending)
	slices.SortStableFunc(objects, func(a, b fakecloud.Object) int { return strings.Compare(n.rank(a), n.rank(b)) })
	for _, o := range objects {
		v.objects = append(v.objects, n.json(o))
	}
	slices.Sort(v.objects)
	return v, nil
}

// besideOwners puts views right behind their owners: where they stand otherwise means nothing.
func besideOwners(resources []apitype.ResourceV3) (all []apitype.ResourceV3) {
	views := map[string][]apitype.ResourceV3{} // by the URN of the owner
	for _, r := range resources {
		if r.ViewOf != "" {
			views[string(r.ViewOf)] = append(views[string(r.ViewOf)], r)
		}
	}
	for _, r := range resources {
		if r.ViewOf == "" {
			all = append(append(all, r), views[string(r.URN)]...)
			delete(views, string(r.URN))
		}
	}
	for _, urn := range slices.Sorted(maps.Keys(views)) { // of owners that are not there
		all = append(all, views[urn]...)
	}
	return all
}

// rank orders resources: by URN, the live one first.
func rank(r apitype.ResourceV3) string { return fmt.Sprint(r.URN, " ", r.Delete) }

// differences says how our view differs from the stock engine's, a line each.
func differences(ours, stock view, ordered bool) (all []string) {
	mine, theirs := urns(ours.resources), urns(stock.resources)
	if !slices.Equal(mine, theirs) {
		if same := slices.Equal(slices.Sorted(slices.Values(mine)), slices.Sorted(slices.Values(theirs))); same && ordered {
			return []string{fmt.Sprintf("the order of resources:\n    ours  %s\n    stock %s", short(mine), short(theirs))}
		}
		return []string{fmt.Sprintf("the resources:\n    ours  %s\n    stock %s", short(mine), short(theirs))}
	}
	for i := range ours.resources {
		all = append(all, fieldDifferences(mine[i], ours.resources[i], stock.resources[i])...)
	}
	if !slices.Equal(ours.pending, stock.pending) {
		all = append(all, fmt.Sprintf("pending operations: ours %v, stock %v", ours.pending, stock.pending))
	}
	if len(all) == 0 && !slices.Equal(ours.objects, stock.objects) {
		all = append(all, fmt.Sprintf("the cloud:\n    ours  %s\n    stock %s",
			strings.Join(lacking(ours.objects, stock.objects), " "), strings.Join(lacking(stock.objects, ours.objects), " ")))
	}
	return all
}

// lacking are the texts of a that b lacks.
func lacking(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func fieldDifferences(urn string, ours, stock map[string]any) (all []string) {
	fields := map[string]bool{}
	for name := range ours {
		fields[name] = true
	}
	for name := range stock {
		fields[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		a, b := jsonText(ours[name]), jsonText(stock[name])
		if a != b {
			all = append(all, fmt.Sprintf("%s of %s:\n    ours  %s\n    stock %s", name, short([]string{urn}), a, b))
		}
	}
	return all
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error() // it came from JSON
	}
	return string(text)
}

func urns(resources []map[string]any) (all []string) {
	for _, r := range resources {
		urn := fmt.Sprint(r["urn"])
		if r["delete"] == true {
			urn += " (delete)"
		}
		all = append(all, urn)
	}
	return all
}

var urnStart = regexp.MustCompile(`urn:pulumi:[^:]+::[^:]+::`)

// short is a list of URNs without what they have in common.
func short(urns []string) string { return urnStart.ReplaceAllString(strings.Join(urns, ", "), "") }

// compared are the objects that must be the same on both sides. What was asked to be kept when it left the state
// depends, where updates are concurrent, on what one that failed had got to.
func (s *side) compared(ordered bool) []fakecloud.Object {
	if ordered {
		return s.objects
	}
	known := map[string]bool{}
	for _, r := range s.state.Resources {
		known[objectOf(r)] = true
	}
	return slices.DeleteFunc(slices.Clone(s.objects), func(o fakecloud.Object) bool {
		id := o.Kind + " " + o.ID
		return s.retained[id] && !known[id]
	})
}

// unaccounted are the objects that a side's state does not know, though nobody asked to keep them, and the resources
// that have no object.
func (s *side) unaccounted() (all []string) {
	state := s.state
	known, pending, present := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range state.Resources {
		known[objectOf(r)] = true
	}
	for _, o := range state.PendingOperations {
		pending[string(o.Resource.URN)] = true
	}
	for _, o := range s.objects {
		id := o.Kind + " " + o.ID
		present[id] = true
		if !o.Foreign && !known[id] && !pending[o.Owner] && !s.retained[id] {
			all = append(all, "the state does not know the object "+short([]string{o.Owner}))
		}
	}
	for _, r := range state.Resources {
		managed := r.Custom && !r.External && !r.PendingReplacement && cloudKinds[string(r.Type)] != ""
		if managed && !present[objectOf(r)] {
			all = append(all, "there is no object of "+short([]string{string(r.URN)}))
		}
	}
	slices.Sort(all)
	return all
}

// cloudKinds are the kinds in the cloud, by type.
var cloudKinds = map[string]string{autoType: "auto", renamedType: "auto", namedType: "named", otherType: "named",
	exclusiveType: "exclusive", serverType: "server", taggedType: "tagged", fleetType: "fleet", opaqueType: "opaque"}

// objectOf is the kind and the id of a resource's object in the cloud.
func objectOf(r apitype.ResourceV3) string { return cloudKinds[string(r.Type)] + " " + string(r.ID) }
