package pluginhost

import (
	"context"
	"fmt"
	"strconv"

	"github.com/deployctl/deployctl/internal/panics"
	"github.com/deployctl/deployctl/internal/pluginprotocol"
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
	return append(panics.ServerOptions(told),
		grpc.MaxRecvMsgSize(pluginprotocol.MaxMessage), grpc.MaxSendMsgSize(pluginprotocol.MaxMessage),
		grpc.ChainUnaryInterceptor(check))
}

// checkAnswer rejects answers of plugins, and details of their errors, that have values which cannot be read. The call
// may have had its effect.
func checkAnswer(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	parts := []any{reply}
	if err != nil {
		parts = status.Convert(err).Details()
	}
	for _, part := range parts {
		if unreadable := checkValues(part); unreadable != nil {
			return status.Errorf(codes.Internal, "the plugin's answer cannot be read: %v", unreadable)
		}
	}
	return err
}

// checkValues checks what the SDK assumes about the values of a message, and of messages in it: each has a kind, and
// their nesting is limited.
func checkValues(message any) (err error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil
	}
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Message() == nil || field.IsList() || field.IsMap() {
			return true
		}
		switch x := v.Message().Interface().(type) {
		case *structpb.Struct:
			err = checkStruct(x, string(field.Name()), deepest)
		case *structpb.Value:
			err = checkValue(x, string(field.Name()), deepest)
		default:
			err = checkValues(x)
		}
		return err == nil
	})
	return err
}

func checkStruct(s *structpb.Struct, path string, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%.100s… is nested more than %d levels deep", path, deepest)
	}
	for name, v := range s.GetFields() {
		if err := checkValue(v, path+"."+name, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(v *structpb.Value, path string, depth int) error {
	switch x := v.GetKind().(type) {
	case nil:
		return fmt.Errorf("%.100s has a value of no kind", path)
	case *structpb.Value_StructValue:
		return checkStruct(x.StructValue, path, depth)
	case *structpb.Value_ListValue:
		if depth == 0 {
			return fmt.Errorf("%.100s… is nested more than %d levels deep", path, deepest)
		}
		for i, e := range x.ListValue.GetValues() {
			if err := checkValue(e, path+"["+strconv.Itoa(i)+"]", depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}
