package storetest

import (
	"bytes"
	"context"
	"errors"
)

// Keeper is a key management service that keeps its key at home.
type Keeper struct {
	Key  []byte
	Away bool // nothing is unwrapped
}

// ID implements seal.Keeper.
func (k *Keeper) ID() string { return "local " + string(k.Key) }

// Wrap implements seal.Keeper.
func (k *Keeper) Wrap(_ context.Context, plain []byte) ([]byte, error) {
	return append(bytes.Clone(k.Key), plain...), nil
}

// Unwrap implements seal.Keeper.
func (k *Keeper) Unwrap(_ context.Context, wrapped []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(wrapped, k.Key)
	if k.Away || !ok {
		return nil, errors.New("access denied")
	}
	return plain, nil
}
