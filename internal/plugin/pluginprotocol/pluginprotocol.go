// Package pluginprotocol has what all ends of the gRPC protocols between engine, plugins and programs agree on.
package pluginprotocol

// MaxMessage is the largest message in bytes. Pulumi's engine and its plugins have the same limit.
const MaxMessage = 400 << 20

// MaxStreams is how many calls one connection to this process may have open. SDKs keep further calls waiting.
const MaxStreams = 10_000
