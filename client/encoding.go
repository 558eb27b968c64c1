package client

import (
	"context"

	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// encoded refuses a request with a text that is not UTF-8, by the field's name: gRPC names none.
func encoded(
	ctx context.Context, method string, request, answer any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	if err := checkEncoding(request); err != nil {
		return err
	}
	return invoke(ctx, method, request, answer, c, options...)
}

// encodedStream is encoded for each message of a stream.
func encodedStream(
	ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, d, c, method, options...)
	return checkedStream{stream}, err
}

type checkedStream struct{ grpc.ClientStream }

func (s checkedStream) SendMsg(m any) error {
	if err := checkEncoding(m); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}

func checkEncoding(m any) error {
	if m, ok := m.(proto.Message); ok {
		return wire.CheckEncoding(m.ProtoReflect())
	}
	return nil
}
