package intake

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// mostValues is how many parts a message may have: values, texts and messages. Four bytes can be an empty list, which
	// takes some 180 when it is decoded and made a property.
	mostValues = 1_000_000
	// deepest is how deep messages are nested at most; decoding refuses more.
	deepest = 10_000
)

var errValues = fmt.Errorf("it has more than %d values", mostValues)

// ServerCodec has a server refuse messages of too many values before it decodes them.
func ServerCodec() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")})
}

// ClientCodec has a client refuse such answers.
func ClientCodec() grpc.CallOption { return grpc.ForceCodecV2(codec{encoding.GetCodecV2("proto")}) }

// codec is that of gRPC, but for messages of too many values.
type codec struct{ encoding.CodecV2 }

// Unmarshal decodes a message.
func (c codec) Unmarshal(data mem.BufferSlice, into any) error {
	m, ok := into.(proto.Message)
	if !ok || data.Len() <= large {
		return c.CodecV2.Unmarshal(data, into)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	return Unmarshal(whole.ReadOnlyData(), m)
}

// Unmarshal decodes a message that is part of another one, unless it has too many values.
func Unmarshal(data []byte, into proto.Message) error {
	left := mostValues
	if len(data) > large && !fewValues(data, into.ProtoReflect().Descriptor(), &left, deepest) {
		return errValues
	}
	return proto.Unmarshal(data, into)
}

// fewValues takes the values of a message from those that are left, and reports whether there are as many. What cannot
// be decoded has none from there on: decoding says why.
func fewValues(data []byte, d protoreflect.MessageDescriptor, left *int, depth int) bool {
	for len(data) > 0 && depth > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return true
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return true
		}
		if kind == protowire.BytesType {
			if *left--; *left < 0 {
				return false
			}
			part, _ := protowire.ConsumeBytes(data)
			field := d.Fields().ByNumber(number)
			if field != nil && field.Message() != nil && !fewValues(part, field.Message(), left, depth-1) {
				return false
			}
		}
		data = data[n:]
	}
	return true
}
