package grpcapi

import (
	"context"

	"google.golang.org/grpc"
)

// asStreams is a registrar that makes every unary method a stream of one message each way, which is the same on the
// wire. gRPC reads the message of a unary call before any interceptor is asked; that of a stream is read when it is
// wanted, so that a caller is known before memory is spent. It also leaves one interceptor for all methods.
type asStreams struct {
	*grpc.Server
	unary map[string]bool // gets the full names of methods that were
}

func (a asStreams) RegisterService(service *grpc.ServiceDesc, impl any) {
	streams := *service
	streams.Methods = nil
	streams.Streams = append([]grpc.StreamDesc(nil), service.Streams...)
	for _, m := range service.Methods {
		a.unary["/"+service.ServiceName+"/"+m.MethodName] = true
		streams.Streams = append(streams.Streams, grpc.StreamDesc{StreamName: m.MethodName, Handler: unary(m)})
	}
	a.Server.RegisterService(&streams, impl)
}

func unary(m grpc.MethodDesc) grpc.StreamHandler {
	return func(srv any, s grpc.ServerStream) error {
		answer, err := m.Handler(srv, s.Context(), s.RecvMsg, nil)
		if err != nil {
			return err
		}
		return s.SendMsg(answer)
	}
}

// counted has the interceptors of a Config see every call as the kind that its method is.
func counted(c Config, unary map[string]bool, serve grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		switch {
		case c.Unary != nil && unary[info.FullMethod]:
			_, err := c.Unary(s.Context(), nil, &grpc.UnaryServerInfo{Server: srv, FullMethod: info.FullMethod},
				func(context.Context, any) (any, error) { return nil, serve(srv, s, info, handle) })
			return err
		case c.Stream != nil && !unary[info.FullMethod]:
			return c.Stream(srv, s, info, func(srv any, s grpc.ServerStream) error {
				return serve(srv, s, info, handle)
			})
		}
		return serve(srv, s, info, handle)
	}
}
