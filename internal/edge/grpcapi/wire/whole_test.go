package wire

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// pair is a type of package deployments and the message that it is written as.
type pair struct {
	message proto.Message
	check   func(t *testing.T) // holds that each is what it was when it comes back
}

// pairOf makes a pair of two functions that are inverse. What the edge sets itself is copied by keep, if that is not
// nil.
func pairOf[T any, M proto.Message](from func(T) M, to func(M) T, keep func(got *T, sent T)) pair {
	var empty M
	return pair{message: empty, check: func(t *testing.T) {
		sent := filltest.Of[T](t)
		got := to(from(sent))
		if keep != nil {
			keep(&got, sent)
		}
		if !reflect.DeepEqual(got, sent) {
			t.Errorf("%T is sent as\n%+v\nand arrives as\n%+v", sent, sent, got)
		}
		message := empty.ProtoReflect().New()
		fillMessage(t, message)
		if again := from(to(message.Interface().(M))); !proto.Equal(again, message.Interface()) {
			t.Errorf("%s is received as\n%v\nand sent again as\n%v", message.Descriptor().Name(), message, again)
		}
		if got := to(from(*new(T))); !reflect.DeepEqual(got, *new(T)) {
			t.Errorf("%T without any field arrives as\n%+v", got, got)
		}
	}}
}

var pairs = []pair{
	pairOf(FromRequest, ToRequest, func(got *deployments.UpdateRequest, sent deployments.UpdateRequest) {
		unsent(&got.Authority, sent.Authority)
		unsent(&got.Lease, sent.Lease)
		unsent(&got.Profile, sent.Profile)
		unsent(&got.Submitted, sent.Submitted)
		got.Trace += sent.Trace // a client does not send it: the service sets it
	}),
	pairOf(FromMode, ToMode, nil),
	pairOf(FromQuota, ToQuota, nil),
	pairOf(FromQuotaChange, ToQuotaChange, func(got *deployments.QuotaChange, sent deployments.QuotaChange) {
		got.By += sent.By // a client does not send it: the edge knows who it is
	}),
	pairOf(FromEdit, ToEdit, nil),
	pairOf(FromMove, ToMove, nil),
	pairOf(FromAccepted, ToAccepted, nil),
	pairOf(FromInfo, ToInfo, nil),
	pairOf(fromProgress, func(m *api.Progress) deployments.Progress { return *toProgress(m) }, nil),
	pairOf(FromStackInfo, ToStackInfo, nil),
	pairOf(FromStatusQuery, ToStatusQuery, nil),
	pairOf(FromStatusPage, ToStatusPage, nil),
	pairOf(FromManifest, ToManifest, nil),
	pairOf(FromSchedule, ToSchedule, func(got *deployments.Schedule, sent deployments.Schedule) {
		unsent(&got.Authority, sent.Authority)
	}),
	pairOf(FromDrift, ToDrift, nil),
	pairOf(func(m deployments.Member) *api.Member { return FromMembers([]deployments.Member{m})[0] },
		func(m *api.Member) deployments.Member { return ToMembers([]*api.Member{m})[0] }, nil),
	pairOf(func(m deployments.Token) *api.Token { return FromTokens([]deployments.Token{m})[0] },
		func(m *api.Token) deployments.Token { return ToTokens([]*api.Token{m})[0] }, nil),
	pairOf(FromNewToken, ToNewToken, func(got *deployments.Token, sent deployments.Token) {
		got.Created, got.Used, got.Damaged = sent.Created, sent.Used, sent.Damaged // a new token has none
		got.Origin, got.Limit = sent.Origin, sent.Limit
	}),
	pairOf(FromAccount, ToAccount, nil),
	pairOf(FromTeam, ToTeam, nil),
	pairOf(FromScope, ToScope, nil),
	pairOf(FromWebhookName, ToWebhookName, nil),
	pairOf(FromWebhook, ToWebhook, nil),
	pairOf(FromDelivery, ToDelivery, nil),
	pairOf(FromTrust, ToTrust, nil),
	pairOf(FromProfile, ToProfile, nil),
	pairOf(FromProfileChange, ToProfileChange, func(got *deployments.ProfileChange, sent deployments.ProfileChange) {
		got.By = sent.By // the edge sets it
	}),
	pairOf(FromAuditEntry, ToAuditEntry, func(got *deployments.AuditEntry, sent deployments.AuditEntry) {
		got.Refused, got.Party = sent.Refused, sent.Party // they are not kept
	}),
	pairOf(FromAuditQuery, ToAuditQuery, nil),
}

// unsent makes got what was sent if nothing arrived, and else something different: a client must not send it.
func unsent[T any](got **T, sent *T) {
	if *got != nil {
		*got = nil
		return
	}
	*got = sent
}

func TestEveryFieldOfBothSidesTravels(t *testing.T) {
	for _, p := range pairs {
		t.Run(string(p.message.ProtoReflect().Descriptor().Name()), p.check)
	}
}

// TestEveryMessageHasItsPair holds that no message but requests and responses, which client and grpcapi take apart,
// is translated elsewhere.
func TestEveryMessageHasItsPair(t *testing.T) {
	tested := map[protoreflect.Name]bool{"ErrorDetail": true} // see TestEveryCodeComesBackAsItWasSent
	var note func(d protoreflect.MessageDescriptor)
	note = func(d protoreflect.MessageDescriptor) {
		if tested[d.Name()] || d.ParentFile() != api.File_deployctl_v1_deployctl_proto {
			return
		}
		tested[d.Name()] = true
		for i := range d.Fields().Len() {
			field := d.Fields().Get(i)
			if field.IsMap() {
				field = field.MapValue()
			}
			if field.Message() != nil {
				note(field.Message())
			}
		}
	}
	for _, p := range pairs {
		note(p.message.ProtoReflect().Descriptor())
	}
	messages := api.File_deployctl_v1_deployctl_proto.Messages()
	for i := range messages.Len() {
		name := messages.Get(i).Name()
		exchanged := strings.HasSuffix(string(name), "Request") || strings.HasSuffix(string(name), "Response")
		if !tested[name] && !exchanged {
			t.Errorf("no pair has the message %s", name)
		}
	}
}

// fillMessage sets every field of a message, and of those in it.
func fillMessage(t *testing.T, m protoreflect.Message) {
	t.Helper()
	switch m.Interface().(type) {
	case *timestamppb.Timestamp:
		proto.Merge(m.Interface(), timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
		return
	case *durationpb.Duration:
		proto.Merge(m.Interface(), durationpb.New(time.Minute))
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case field.IsList():
			list := m.Mutable(field).List()
			list.Append(fieldValue(t, field, list.NewElement))
		case field.IsMap():
			entries := m.Mutable(field).Map()
			entries.Set(protoreflect.ValueOfString("x").MapKey(), fieldValue(t, field.MapValue(), entries.NewValue))
		default:
			m.Set(field, fieldValue(t, field, func() protoreflect.Value { return m.NewField(field) }))
		}
	}
}

// fieldValue returns a value of the field's kind that is not its zero value; fresh makes a message.
func fieldValue(
	t *testing.T, field protoreflect.FieldDescriptor, fresh func() protoreflect.Value,
) protoreflect.Value {
	t.Helper()
	switch field.Kind() {
	case protoreflect.MessageKind:
		v := fresh()
		fillMessage(t, v.Message())
		return v
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("x")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("x"))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(3)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(3)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(3)
	}
	t.Fatalf("a field of kind %s cannot be set", field.Kind())
	return protoreflect.Value{}
}

func TestThePreviewOfANewStackIsNotNoPreview(t *testing.T) {
	zero := 0
	if got := ToRequest(FromRequest(deployments.UpdateRequest{BaseVersion: &zero})).BaseVersion; got == nil ||
		*got != 0 {
		t.Errorf("version 0 came as %v", got)
	}
}
