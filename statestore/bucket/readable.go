package bucket

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
)

// purposeReadable is the purpose of the key that authenticates readable objects that are JSON; heads have another.
const purposeReadable = "readable"

// PutReadable writes a JSON object that a person can read without the service's keys. It has a MAC, which binds it to
// its key, in the field "mac".
func (s *Sealed) PutReadable(ctx context.Context, key string, v any, c Condition) error {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = s.withMAC(key, data)
	}
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	_, err = s.Objects.Put(ctx, key, data, c)
	return Failed(err, "write "+key)
}

// withMAC adds the MAC of its place to a JSON object.
func (s *Sealed) withMAC(key string, data []byte) ([]byte, error) {
	mac, _, err := s.MAC(purposeReadable, key, data)
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

// GetReadable reads what PutReadable wrote, and returns the object's tag. CodeFormat: this service did not write it.
func (s *Sealed) GetReadable(ctx context.Context, key string, v any) (tag string, err error) {
	o, err := s.Objects.Get(ctx, key)
	if err != nil {
		return "", Failed(err, "read "+key)
	}
	right, given, err := s.MAC(purposeReadable, key, o.Data)
	if err == nil && !hmac.Equal([]byte(right), []byte(given)) {
		err = errors.New("it was not written by this service")
	}
	if err == nil {
		err = json.Unmarshal(o.Data, v)
	}
	if err != nil {
		return "", Damaged(key, err)
	}
	return o.Tag, nil
}

// MAC returns the MAC that a readable object should have, and the one it has. The MAC covers the object's place, such
// as the name of a head's stack, and all fields except the MAC, sorted by name and without spaces.
func (s *Sealed) MAC(purpose, place string, data []byte) (right, given string, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", "", err
	}
	if mac, ok := fields["mac"]; ok {
		if err := json.Unmarshal(mac, &given); err != nil {
			return "", "", err
		}
		delete(fields, "mac")
	}
	canonical, err := json.Marshal(fields)
	if err != nil {
		return "", "", err
	}
	sum := s.Keys.Box(purpose).Digest(append([]byte(place+"\x00"), canonical...))
	return hex.EncodeToString(sum), given, nil
}
