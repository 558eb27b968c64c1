package pluginhost

import (
	"errors"
	"io"
	"slices"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	// longestStatus bounds, in bytes, the texts of an error of a plugin taken together.
	longestStatus = 256 << 10
	// mostReasons bounds each list in the details of an error.
	mostReasons = 1000
)

// detailsRead are the details of errors that the SDK and this package read.
var detailsRead = map[protoreflect.FullName]bool{
	proto.MessageName((*pulumirpc.ErrorCause)(nil)):                true,
	proto.MessageName((*pulumirpc.InputPropertiesError)(nil)):      true,
	proto.MessageName((*pulumirpc.ErrorResourceInitFailed)(nil)):   true,
	proto.MessageName((*pulumirpc.ConfigureErrorMissingKeys)(nil)): true,
	proto.MessageName((*errdetails.RetryInfo)(nil)):                true,
}

// plain returns the error of a call as the SDK expects it, whatever the plugin sent: with the details that are read,
// the first of each kind, and with texts of bounded length. The SDK panics on others, also on goroutines of its own.
// The error of every call goes through it before the SDK sees it, and that of every stream.
func plain(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	sent := status.Convert(err).Proto()
	left := room(longestStatus)
	kept := &spb.Status{Code: sent.GetCode(), Message: left.cut(sent.GetMessage())}
	if code := codes.Code(sent.GetCode()); code > codes.Unauthenticated { //nolint:gosec // any is compared
		kept.Code = int32(codes.Unknown)
	}
	seen := map[protoreflect.FullName]bool{}
	for _, packed := range sent.GetDetails() {
		kind := packed.MessageName()
		if !detailsRead[kind] || seen[kind] {
			continue
		}
		detail, err := packed.UnmarshalNew()
		if err != nil {
			continue
		}
		seen[kind] = true
		if err := checkValues(detail); err != nil {
			return unreadable(err)
		}
		left.cutAll(detail)
		if packed, err := anypb.New(detail); err == nil {
			kept.Details = append(kept.Details, packed)
		}
	}
	return status.ErrorProto(kept)
}

// unreadable is the error of a call whose answer has values that cannot be read. The call may have had its effect.
func unreadable(err error) error {
	return status.Errorf(codes.Internal, "the plugin's answer cannot be read: %v", err)
}

// room is how many bytes of texts may still follow.
type room int

// cut returns the part of a text for which there is room.
func (r *room) cut(text string) string {
	if len(text) > int(*r) {
		text = text[:*r] + "…"
	}
	*r -= room(min(len(text), int(*r)))
	return strings.ToValidUTF8(text, "�")
}

// cutAll shortens the texts of a detail. The id and the state of a resource stay whole: they are not only shown.
func (r *room) cutAll(detail proto.Message) {
	switch d := detail.(type) {
	case *pulumirpc.ErrorCause:
		d.Message, d.StackTrace = r.cut(d.GetMessage()), r.cut(d.GetStackTrace())
	case *pulumirpc.InputPropertiesError:
		d.Errors = first(d.GetErrors())
		for _, e := range d.GetErrors() {
			e.PropertyPath, e.Reason = r.cut(e.GetPropertyPath()), r.cut(e.GetReason())
		}
	case *pulumirpc.ErrorResourceInitFailed:
		d.Reasons = first(d.GetReasons())
		for i, reason := range d.GetReasons() {
			d.Reasons[i] = r.cut(reason)
		}
	case *pulumirpc.ConfigureErrorMissingKeys:
		d.MissingKeys = first(d.GetMissingKeys())
		for _, k := range d.GetMissingKeys() {
			k.Name, k.Description = r.cut(k.GetName()), r.cut(k.GetDescription())
		}
	}
}

func first[T any](all []T) []T { return slices.Clip(all[:min(len(all), mostReasons)]) }
