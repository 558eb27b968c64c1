// Package panics turns a panic into an error of what was being done: a call of a server, a step, a goroutine of an
// update. The log gets the stack trace; nothing else that the process does is disturbed.
package panics

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// longestValue bounds, in bytes, how much of a panic's value is logged: it may quote what a program sent.
const longestValue = 512

// PanicError says that something panicked. Its text does not quote the panic's value, which may hold anything.
type PanicError struct {
	Doing string // what was being done, as in "while ..."
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("deployctl failed internally while %s; the log of the worker has the stack trace", e.Doing)
}

// GRPCStatus makes it Internal for gRPC.
func (e *PanicError) GRPCStatus() *status.Status { return status.New(codes.Internal, e.Error()) }

// Into recovers from a panic and stores it in err as a *PanicError. Defer it.
func Into(err *error, doing string) {
	if value := recover(); value != nil {
		*err = caught(value, doing)
	}
}

// Do calls a function and returns its error, or a *PanicError if it panicked.
func Do(doing string, call func() error) (err error) {
	defer Into(&err, doing)
	return call()
}

func caught(value any, doing string) *PanicError {
	text := fmt.Sprint(value)
	if len(text) > longestValue {
		text = text[:longestValue] + "…"
	}
	slog.Error("panic while "+doing, "panic", text, "stack", string(debug.Stack()))
	return &PanicError{Doing: doing}
}

// ServerOptions make a gRPC server answer a call that panicked with status Internal. If report is not nil, it is called
// with each such error before the call is answered.
func ServerOptions(report func(error)) []grpc.ServerOption {
	guard := func(err *error, method string) {
		if value := recover(); value != nil {
			p := caught(value, "serving "+method)
			if *err = p; report != nil {
				report(p)
			}
		}
	}
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any,
		err error) {
		defer guard(&err, info.FullMethod)
		return handle(ctx, req)
	}
	stream := func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
		defer guard(&err, info.FullMethod)
		return handle(srv, s)
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}
