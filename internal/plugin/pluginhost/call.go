package pluginhost

import (
	"context"

	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
)

// Await makes a call to a provider and waits for its result until the context ends. The call itself continues after
// that.
func Await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = panics.Do("calling a provider", func() (err error) {
			o.value, err = call()
			return err
		})
		done <- o
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// ErrorText returns the message of a provider's error, with its details about properties.
func ErrorText(err error) string {
	e, ok := rpcerror.FromError(err)
	if !ok {
		return err.Error()
	}
	text := e.Message()
	if e.Cause() != nil {
		text += ": " + e.Cause().Message()
	}
	for _, p := range e.InputPropertiesErrors() {
		text += "\n- property " + p.PropertyPath + ": " + p.Reason
	}
	return text
}
