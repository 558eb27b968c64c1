//go:build unix

package attack

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// texts are what a hostile client writes where a text is expected. The victim's names are not among them.
var texts = []string{
	"", "..", "a/../../b", "\x00", "organization", "prey", "-", strings.Repeat("x", 5000), "urn:pulumi:a::b::c::d",
	"urn:", "\x1b[2J", "${x}", "1", "-1",
	"sha256:0000000000000000000000000000000000000000000000000000000000000000", "up", "destroy", "service", "passphrase",
	"v1:AAAA:v1:AAAA:AAAA", "*", "**", "[", "{{",
}

func messageOf(d protoreflect.MessageDescriptor) proto.Message { return dynamicpb.NewMessage(d) }

// fill sets some of a message's fields to random values.
func fill(random *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case random.IntN(4) == 0 || depth > 4:
		case f.IsMap():
			if f.MapKey().Kind() == protoreflect.StringKind {
				key := protoreflect.ValueOfString(texts[random.IntN(len(texts))]).MapKey()
				m.Mutable(f).Map().Set(key, value(random, f.MapValue(), m.Mutable(f).Map().NewValue, depth))
			}
		case f.IsList():
			list := m.Mutable(f).List()
			for range random.IntN(4) {
				list.Append(value(random, f, list.NewElement, depth))
			}
		default:
			m.Set(f, value(random, f, func() protoreflect.Value { return m.NewField(f) }, depth))
		}
	}
}

// value is a random one of a field's kind.
func value(
	random *rand.Rand, f protoreflect.FieldDescriptor, fresh func() protoreflect.Value, depth int,
) protoreflect.Value {
	numbers := []int64{0, 1, -1, 7, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	n := numbers[random.IntN(len(numbers))]
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(texts[random.IntN(len(texts))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(texts[random.IntN(len(texts))]))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n > 0)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(math.Float64frombits(uint64(n)))
	case protoreflect.MessageKind:
		v := fresh()
		fill(random, v.Message(), depth+1)
		return v
	}
	return fresh()
}

// mutate copies a JSON value and spoils one to three places of it.
func mutate(random *rand.Rand, good any) any {
	text, err := json.Marshal(good)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	for range 1 + random.IntN(3) {
		out = spoil(random, out)
	}
	return out
}

// spoil replaces, removes or adds one value somewhere below v.
func spoil(random *rand.Rand, v any) any {
	strange := []any{
		nil, "", "urn:pulumi:dev::precious::a:b::c", "a:b", "..", -1, 1e308, true, []any{}, map[string]any{},
		"04da6b54-80e4-46f7-96ec-b56ff0331ba9",
		map[string]any{"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"},
		strings.Repeat("[", 300),
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		if len(keys) == 0 || random.IntN(12) == 0 {
			return strange[random.IntN(len(strange))]
		}
		// The order of a map's keys must not decide what a seed does.
		slices.Sort(keys)
		key := keys[random.IntN(len(keys))]
		switch random.IntN(6) {
		case 0:
			delete(v, key)
		case 1:
			v[key] = strange[random.IntN(len(strange))]
		default:
			v[key] = spoil(random, v[key])
		}
		return v
	case []any:
		if len(v) == 0 {
			return append(v, strange[random.IntN(len(strange))])
		}
		i := random.IntN(len(v))
		switch random.IntN(8) {
		case 0:
			return append(v[:i], v[i+1:]...)
		case 1:
			return append(v, v[i])
		default:
			v[i] = spoil(random, v[i])
			return v
		}
	}
	return strange[random.IntN(len(strange))]
}
