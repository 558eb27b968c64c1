package statestore

// The encoder is shared. Used first in a bubble of testing/synctest, it would belong to that one; see TestMain, too.
var _ = zstdWriter.EncodeAll([]byte("outside of all bubbles"), nil)
