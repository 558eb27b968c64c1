package pluginhost

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// deepest is how deep objects and lists may be nested in a value of a program or plugin.
const deepest = 500

// ServerOptions returns the options of every server that programs and plugins call: Pulumi's maximum message size, a
// check that values can be read, and panics that end only their call. told, which may be nil, receives the error of
// each call that fails for one of these reasons rather than in its handler.
func ServerOptions(told func(error)) []grpc.ServerOption {
	check := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := checkValues(req); err != nil {
			err = status.Error(codes.InvalidArgument, err.Error())
			if told != nil {
				told(err)
			}
			return nil, err
		}
		return handle(ctx, req)
	}
	calls := &openCalls{most: mostCalls}
	return append(panics.ServerOptions(told),
		grpc.MaxConcurrentStreams(pluginprotocol.MaxStreams), grpc.InTapHandle(calls.admit),
		grpc.MaxRecvMsgSize(pluginprotocol.MaxMessage), grpc.MaxSendMsgSize(pluginprotocol.MaxMessage),
		intake.ServerCodec(), grpc.StatsHandler(&intake.Watcher{}), grpc.ChainUnaryInterceptor(check))
}

// checkAnswer rejects answers of plugins, and details of their errors, that have values which cannot be read. Errors
// become plain ones.
func checkAnswer(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if err := invoke(ctx, method, req, reply, conn, opts...); err != nil {
		return plain(err)
	}
	if err := checkValues(reply); err != nil {
		return unreadable(err)
	}
	return nil
}

// checkValues checks what the SDK assumes about the values of a message, and of messages in it: each has a kind, and
// their nesting is limited.
func checkValues(message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return nil
	}
	if wrong := checkMessage(m); wrong != nil {
		return wrong
	}
	return nil
}

func checkMessage(m proto.Message) (wrong *misfit) {
	switch m := m.(type) {
	case *structpb.Struct:
		return checkStruct(m, deepest)
	case *structpb.Value:
		return checkValue(m, deepest)
	case *structpb.ListValue:
		return checkList(m, deepest)
	}
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
					wrong = checkMessage(v.Message().Interface()).in("." + first100(key.String()))
					return wrong == nil
				})
			}
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				item := checkMessage(v.List().Get(i).Message().Interface())
				if wrong = item.in("[" + strconv.Itoa(i) + "]"); wrong != nil {
					break
				}
			}
		default:
			wrong = checkMessage(v.Message().Interface())
		}
		wrong = wrong.in("." + string(field.Name()))
		return wrong == nil
	})
	return wrong
}

// misfit is what is wrong with a value. Its path is made on the way out: good values cost none, whatever their names.
type misfit struct{ path, reason string }

func (m *misfit) Error() string { return strings.TrimPrefix(m.path, ".") + " " + m.reason }

// in adds the step that leads to the value so far. nil stays nil.
func (m *misfit) in(step string) *misfit {
	if m != nil {
		m.path = first100(step + m.path)
	}
	return m
}

func first100(text string) string { return fmt.Sprintf("%.100s", text) }

var errTooDeep = fmt.Sprintf("is nested more than %d levels deep", deepest)

func checkStruct(s *structpb.Struct, depth int) *misfit {
	if depth == 0 {
		return &misfit{reason: errTooDeep}
	}
	for name, v := range s.GetFields() {
		if wrong := checkValue(v, depth-1); wrong != nil {
			return wrong.in("." + first100(name))
		}
	}
	return nil
}

func checkList(l *structpb.ListValue, depth int) *misfit {
	if depth == 0 {
		return &misfit{reason: errTooDeep}
	}
	for i, v := range l.GetValues() {
		if wrong := checkValue(v, depth-1); wrong != nil {
			return wrong.in("[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

func checkValue(v *structpb.Value, depth int) *misfit {
	switch x := v.GetKind().(type) {
	case nil:
		return &misfit{reason: "has a value of no kind"}
	case *structpb.Value_StructValue:
		return checkStruct(x.StructValue, depth)
	case *structpb.Value_ListValue:
		return checkList(x.ListValue, depth)
	}
	return nil
}
