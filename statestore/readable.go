package statestore

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
)

// putReadable writes a JSON object that a person can read without the service's keys. It has a MAC, which binds it to
// its key, in the field "mac".
func (s *Store) putReadable(ctx context.Context, key string, v any, c Condition) error {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = s.withMAC(key, data)
	}
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	_, err = s.objects.Put(ctx, key, data, c)
	return failed(err, "write "+key)
}

// withMAC adds the MAC of its place to a JSON object.
func (s *Store) withMAC(key string, data []byte) ([]byte, error) {
	mac, _, err := s.macOf(purposeReadable, key, data)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	if fields["mac"], err = json.Marshal(mac); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// getReadable reads what putReadable wrote, and returns the object's tag. CodeFormat: this service did not write it.
func (s *Store) getReadable(ctx context.Context, key string, v any) (tag string, err error) {
	o, err := s.objects.Get(ctx, key)
	if err != nil {
		return "", failed(err, "read "+key)
	}
	right, given, err := s.macOf(purposeReadable, key, o.Data)
	if err == nil && !hmac.Equal([]byte(right), []byte(given)) {
		err = errors.New("it was not written by this service")
	}
	if err == nil {
		err = json.Unmarshal(o.Data, v)
	}
	if err != nil {
		return "", damaged(key, err)
	}
	return o.Tag, nil
}
