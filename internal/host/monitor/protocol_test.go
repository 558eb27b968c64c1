package monitor

import (
	"os"
	"slices"
	"strings"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// named returns the names of all methods, fields and values that a file of the protocol defines.
func named(file protoreflect.FileDescriptor) (all []string) {
	for i := range file.Services().Len() {
		methods := file.Services().Get(i).Methods()
		for j := range methods.Len() {
			all = append(all, string(methods.Get(j).FullName()))
		}
	}
	values := func(enums protoreflect.EnumDescriptors) {
		for i := range enums.Len() {
			e := enums.Get(i)
			for j := range e.Values().Len() {
				all = append(all, string(e.FullName())+"."+string(e.Values().Get(j).Name()))
			}
		}
	}
	values(file.Enums())
	var messages func(protoreflect.MessageDescriptors)
	messages = func(list protoreflect.MessageDescriptors) {
		for i := range list.Len() {
			m := list.Get(i)
			if m.IsMapEntry() {
				continue
			}
			if m.Fields().Len() == 0 {
				all = append(all, string(m.FullName()))
			}
			for j := range m.Fields().Len() {
				all = append(all, string(m.Fields().Get(j).FullName()))
			}
			values(m.Enums())
			messages(m.Messages())
		}
	}
	messages(file.Messages())
	return all
}

// What the SDK's protocol has is recorded, so that what a newer one adds is served, or left out for a reason.
func TestEachPartOfTheProtocolIsServedOrLeftOutForAReason(t *testing.T) {
	const record = "testdata/protocol.tsv"
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, why, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		known[name] = why
	}
	var now []string
	for _, file := range []protoreflect.FileDescriptor{
		pulumirpc.File_pulumi_resource_proto, pulumirpc.File_pulumi_provider_proto, pulumirpc.File_pulumi_language_proto,
		pulumirpc.File_pulumi_engine_proto, pulumirpc.File_pulumi_analyzer_proto, pulumirpc.File_pulumi_callback_proto,
		pulumirpc.File_pulumi_plugin_proto,
	} {
		now = append(now, named(file)...)
	}
	for _, name := range now {
		if _, ok := known[name]; !ok {
			t.Errorf("the protocol has %s: serve it, or say in %s why not", name, record)
		}
	}
	for name := range known {
		if !slices.Contains(now, name) {
			t.Errorf("%s has %s, and the protocol does not", record, name)
		}
	}
	for feature, value := range pulumirpc.ResourceMonitorFeature_value {
		f := pulumirpc.ResourceMonitorFeature(value)
		why := known["pulumirpc.ResourceMonitorFeature."+feature]
		told := why == "" || strings.HasPrefix(why, "refused") // SDKs must send what is refused
		if slices.Contains(supported(), f) != told {
			t.Errorf("programs are told that %s is supported: %v; the record says: %q", feature, !told, why)
		}
	}
}
