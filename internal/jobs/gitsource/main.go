package gitsource

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"

	"github.com/deployctl/deployctl/deployments"
)

// Main is the process: it reads an order from its standard input, carries it out, and writes the result to its standard
// output. Progress goes to its standard error. It ends with its input: whoever started it is gone then.
func Main() int {
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	var o Order
	if err := in.Decode(&o); err != nil {
		_, _ = io.WriteString(os.Stderr, Name+" is started by deployctl\n")
		return 2
	}
	result, err := carryOut(context.Background(), o, &remote{in: in, out: out})
	if err != nil {
		result.Error, result.Code = err.Error(), deployments.CodeOf(err)
	}
	if out.Encode(result) != nil {
		return 1
	}
	return 0
}

func carryOut(ctx context.Context, o Order, service *remote) (m message, err error) {
	switch {
	case o.Fetch != nil:
		go endWithInput()
		m.Fetched, err = fetch(ctx, *o.Fetch, os.Stderr)
	case o.Pack != nil:
		m.Packed, err = pack(ctx, *o.Pack, service)
	default:
		err = errors.New("the order is empty")
	}
	return m, err
}

// endWithInput ends this process when its input ends.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
