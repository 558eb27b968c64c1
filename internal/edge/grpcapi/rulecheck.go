package grpcapi

import (
	"maps"
	"slices"
	"strings"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// checkRules reports a method that has no rule, a rule that has no method, and a path that its message does not have.
func checkRules(services map[string]grpc.ServiceInfo) error {
	rest := maps.Clone(rules)
	for service, info := range services {
		for _, m := range info.Methods {
			full := "/" + service + "/" + m.Name
			r, ok := rest[full]
			if !ok {
				return deployments.Errorf(deployments.CodeInternal,
					"the method %s has no rule, so nobody may call it: add one to the table", full)
			}
			if err := r.check(service, m.Name); err != nil {
				return err
			}
			delete(rest, full)
		}
	}
	if len(rest) > 0 {
		return deployments.Errorf(deployments.CodeInternal, "there are rules for methods that are not served: %v",
			slices.Sorted(maps.Keys(rest)))
	}
	return nil
}

// check reports what of a rule does not fit its method.
func (r rule) check(service, method string) error {
	described, err := methodOf(service, method)
	if err != nil {
		return err
	}
	if stacked := r.scope == onStack || r.scope == onNewStack; stacked != (len(r.touches) > 0) ||
		(r.scope != open) != (r.role != "") {
		return deployments.Errorf(deployments.CodeInternal, "the rule of %s/%s does not say what it touches, or "+
			"which role it needs", service, method)
	}
	if (r.does == 0) != (r.scope == open) {
		return deployments.Errorf(deployments.CodeInternal,
			"the rule of %s/%s does not say what the method does: reads, uploads, discloses or changes", service,
			method)
	}
	if err := r.checkRoom(described); err != nil {
		return err
	}
	named, touched := slices.Sorted(slices.Values(stackPaths(described.Input()))),
		slices.Sorted(slices.Values(r.touches))
	if !slices.Equal(named, touched) {
		return deployments.Errorf(deployments.CodeInternal,
			"the request of %s/%s has stacks at %q, and its rule touches %q: name each of them, which a rule that is "+
				"onAny cannot",
			service, method, named, touched)
	}
	for message, paths := range map[protoreflect.MessageDescriptor][]string{
		described.Input(): r.subject, described.Output(): r.answered,
	} {
		for _, path := range paths {
			if !has(message, path) {
				return deployments.Errorf(deployments.CodeInternal, "%s/%s has no field %s, which its rule names",
					service, method, path)
			}
		}
	}
	return nil
}

// checkRoom reports that a rule does not say what memory a method that streams needs.
func (r rule) checkRoom(m protoreflect.MethodDescriptor) error {
	fits := r.room == ofMessage
	switch {
	case r.scope == open:
	case m.IsStreamingClient():
		size := m.Input().Fields().ByName("size")
		fits = (r.room == ofContent || r.room == ofParsed) && size != nil && size.Kind() == protoreflect.Int64Kind
	case m.IsStreamingServer():
		fits = r.room == ofExport || r.room == ofParts || r.room == ofPages
	}
	if !fits {
		return deployments.Errorf(deployments.CodeInternal, "the rule of %s does not say what memory its streams "+
			"need: ofContent or ofParsed, with the size in the first message, for what it receives; ofExport, "+
			"ofParts or ofPages for what it sends", m.FullName())
	}
	return nil
}

// has reports whether a message has a field at a path such as update.version.
func has(message protoreflect.MessageDescriptor, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		if message == nil {
			return false
		}
		field := message.Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return false
		}
		message = field.Message()
	}
	return true
}

// methodOf describes a method.
func methodOf(service, method string) (protoreflect.MethodDescriptor, error) {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, err
	}
	described, ok := found.(protoreflect.ServiceDescriptor)
	if !ok || described.Methods().ByName(protoreflect.Name(method)) == nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "there is no description of %s/%s", service, method)
	}
	return described.Methods().ByName(protoreflect.Name(method)), nil
}

// stackPaths returns the path of every StackName that a message can have, in lists and maps too. A message of the API
// that contains itself has a path that no rule can name.
func stackPaths(m protoreflect.MessageDescriptor, within ...protoreflect.FullName) (paths []string) {
	within = append(slices.Clone(within), m.FullName())
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		inner := field.Message()
		if field.IsMap() {
			inner = field.MapValue().Message()
		}
		name := string(field.Name())
		switch {
		case inner == nil:
		case inner.FullName() == (&api.StackName{}).ProtoReflect().Descriptor().FullName():
			paths = append(paths, name)
		case slices.Contains(within, inner.FullName()):
			if inner.ParentFile() == api.File_deployctl_v1_deployctl_proto {
				paths = append(paths, name+" (which contains itself)")
			}
		default:
			for _, path := range stackPaths(inner, within...) {
				paths = append(paths, name+"."+path)
			}
		}
	}
	return paths
}
