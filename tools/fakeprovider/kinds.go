package fakeprovider

import "github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

// naming is where the name of a thing in the cloud comes from.
type naming int

const (
	named  naming = iota // from the program; it is also the id
	auto                 // from the program or else from autonaming; it is also the id
	server               // there is none; the cloud makes the id
)

// kind is a custom resource type.
type kind struct {
	cloud     string // its kind in the cloud
	naming    naming
	tagged    bool // tagged with the URN in the cloud
	exclusive bool // a replacement deletes first
	views     bool // its settings are views
	scoped    bool // its id is made of the account, the zone and the name
	opaque    bool // the provider leaves the comparison of old and new inputs to the engine
	about     string
}

var kinds = map[tokens.Type]kind{
	"fake:index:Named": {cloud: "named", naming: named, about: "A thing whose name the program gives."},
	"fake:index:Exclusive": {cloud: "exclusive", naming: named, exclusive: true,
		about: "A Named of which no two can be at once: a replacement deletes first."},
	"fake:index:Fleet":   {cloud: "fleet", naming: named, views: true, about: "A Named whose settings are views."},
	"fake:index:Auto":    {cloud: "auto", naming: auto, about: "A thing whose name autonaming makes."},
	"fake:index:Renamed": {cloud: "auto", naming: auto, about: "Another name of the type Auto."},
	"fake:index:Scoped": {cloud: "scoped", naming: auto, scoped: true,
		about: "A thing whose id is ACCOUNT:ZONE:NAME; autonaming makes the name."},
	"fake:index:Filed": {cloud: "filed", naming: server,
		about: "A thing whose id the cloud makes and that fake:index:search finds by its settings.mark."},
	"fake:index:Tagged": {cloud: "tagged", naming: server, tagged: true,
		about: "A thing whose id the cloud makes and that is found by its tag."},
	"fake:index:Server": {cloud: "server", naming: server, about: "A thing whose id the cloud makes and that " +
		"cannot be found without it."},
	"fake:index:Opaque": {cloud: "opaque", naming: server, opaque: true, about: "A Server that the engine compares: " +
		"Diff does not know what has changed."},
}

// urnTag is the tag by which a Tagged is found.
const urnTag = "urn"

// declaration is an input of every custom resource; each is an output as well.
type declaration struct {
	name     string
	typ      string // of its schema
	items    string // of an array's or object's elements
	fallback any    // what Check fills in; nil for nothing
	replaces bool   // a change replaces
	secret   bool
	about    string
}

// inputs are those that all kinds share, in the order of the schema. The name comes first where there is one.
var inputs = []declaration{
	{name: "size", typ: "integer", fallback: 1.0, about: "Updated in place; not negative."},
	{name: "zone", typ: "string", fallback: "a", replaces: true, about: "a, b or c; a change replaces."},
	{name: "attachedTo", typ: "string", replaces: true, about: "What this hangs on, as an output of another " +
		"resource; a change replaces."},
	{name: "links", typ: "array", items: "string", about: "Outputs of other resources; updated in place."},
	{name: "settings", typ: "object", items: "pulumi.json#/Any", about: "Anything; updated in place."},
	{name: document, typ: "string", about: "JSON; what differs only in its form is no change."},
	{name: "secretText", typ: "string", secret: true, about: "Secret even when the program does not say so."},
	{name: "deleteBeforeReplace", typ: "boolean", about: "A replacement deletes first."},
	{name: "failInit", typ: "boolean", about: "Create and Update do their work and then report a failed " +
		"initialisation."},
	{name: "blobSize", typ: "integer", about: "Length of the output blob in bytes; not negative."},
}

var nameInput = declaration{name: "name", typ: "string", replaces: true,
	about: "Name in the cloud, unique within the kind."}

// computed are the outputs that are not inputs.
var computed = []declaration{
	{name: "arn", typ: "string", about: "fake:KIND:ID."},
	{name: "endpoint", typ: "string", about: "ID.ZONE.fake."},
	{name: "generation", typ: "integer", about: "1 at creation; each update adds 1."},
	{name: "accessKey", typ: "string", secret: true, about: "A secret that the provider makes from the id."},
	{name: "blob", typ: "string", about: "blobSize bytes that do not compress well."},
}

// inputs are the kind's inputs, in order.
func (k kind) inputs() []declaration {
	if k.naming == server {
		return inputs
	}
	return append([]declaration{nameInput}, inputs...)
}
