package bags

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// floatSig marks a number that JSON cannot write, as the hexadecimal bits of its IEEE 754 double.
const floatSig = "8ad145fe-0d11-4827-bfd7-1abcbf086f5c"

// Plain writes the plain form.
func Plain(values resource.PropertyMap) (json.RawMessage, error) {
	w := writer{form: formPlain}
	err := w.object(values)
	return w.buf, err
}

// Encrypt makes a ciphertext of a secret's plain text.
type Encrypt func(plain string) (string, error)

// StoredValues is a stored form.
type StoredValues struct {
	JSON json.RawMessage
	// ByteStrings: some string, maybe inside a secret, is no valid UTF-8. Readers must know the feature "byteString".
	ByteStrings bool
}

// Stored writes the stored form: secrets become what encrypt makes of them, or stay readable when encrypt is nil.
// The plain text of a secret is itself in stored form, with nothing inside it encrypted again.
func Stored(values resource.PropertyMap, encrypt Encrypt) (StoredValues, error) {
	w := writer{form: formStored, encrypt: encrypt}
	err := w.object(values)
	return StoredValues{w.buf, w.byteStrings}, err
}

type form int

const (
	formPlain form = iota
	formStored
	formCompared
)

// writer appends a form of values to buf.
type writer struct {
	form    form
	encrypt Encrypt
	buf     []byte
	// differs: the compared form of what was written is another one.
	differs bool
	// byteStrings: some string was no valid UTF-8.
	byteStrings bool
}

func (w *writer) object(m resource.PropertyMap) error {
	if len(m) == 0 {
		w.buf = append(w.buf, "{}"...)
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, string(k))
	}
	sort.Strings(keys)
	open := byte('{')
	for _, k := range keys {
		w.key(open, k)
		open = ','
		if err := w.value(m[resource.PropertyKey(k)]); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	w.buf = append(w.buf, '}')
	return nil
}

func (w *writer) key(open byte, k string) {
	w.buf = append(w.buf, open)
	w.text(k)
	w.buf = append(w.buf, ':')
}

func (w *writer) value(v resource.PropertyValue) error {
	switch x := v.V.(type) {
	case nil:
		w.buf = append(w.buf, "null"...)
	case bool:
		w.buf = strconv.AppendBool(w.buf, x)
	case float64:
		w.number(x)
	case string:
		w.string(x)
	case []resource.PropertyValue:
		return w.array(x)
	case resource.PropertyMap:
		return w.object(x)
	case resource.Computed:
		w.differs = true
		if w.form == formPlain {
			w.text(unknown(x.Element))
		} else {
			w.text(sig.UnknownStringValue)
		}
	case resource.Output:
		return w.output(x)
	case *resource.Secret:
		return w.secret(x.Element)
	case *asset.Asset:
		return w.content(sig.AssetSig, x.Hash, x.Serialize())
	case *archive.Archive:
		return w.content(sig.ArchiveSig, x.Hash, x.Serialize())
	case resource.ResourceReference:
		return w.reference(x)
	default:
		return fmt.Errorf("a value of type %T cannot be stored", v.V)
	}
	return nil
}

func (w *writer) array(a []resource.PropertyValue) error {
	w.buf = append(w.buf, '[')
	for i, v := range a {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		if err := w.value(v); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	w.buf = append(w.buf, ']')
	return nil
}

// output writes an output value: whole in the plain form, else what is left without its dependencies.
func (w *writer) output(o resource.Output) error {
	w.differs = true
	if w.form != formPlain {
		element := o.Element
		if !o.Known {
			element = resource.MakeComputed(resource.NewProperty(""))
		}
		if o.Secret {
			element = resource.MakeSecret(element)
		}
		return w.value(element)
	}
	return w.object(signedOutput(o))
}

// signedOutput returns an output as an object with the signature of outputs.
func signedOutput(o resource.Output) resource.PropertyMap {
	m := resource.PropertyMap{sig.Key: resource.NewProperty(sig.OutputValue)}
	if o.Known {
		m["value"] = o.Element
	}
	if o.Secret {
		m["secret"] = resource.NewProperty(true)
	}
	if len(o.Dependencies) > 0 {
		deps := make([]resource.PropertyValue, len(o.Dependencies))
		for i, d := range o.Dependencies {
			deps[i] = resource.NewProperty(string(d))
		}
		m["dependencies"] = resource.NewProperty(deps)
	}
	return m
}

func (w *writer) secret(element resource.PropertyValue) error {
	w.signed(sig.Secret)
	if w.form != formStored {
		w.key(',', "value")
		if err := w.value(element); err != nil {
			return err
		}
		w.buf = append(w.buf, '}')
		return nil
	}
	inner := writer{form: formStored}
	if w.encrypt != nil {
		inner.encrypt = func(s string) (string, error) { return s, nil }
	}
	if err := inner.value(element); err != nil {
		return err
	}
	w.byteStrings = w.byteStrings || inner.byteStrings
	field, text := "plaintext", string(inner.buf)
	if w.encrypt != nil {
		field = "ciphertext"
		var err error
		if text, err = w.encrypt(text); err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
	}
	w.key(',', field)
	w.text(text)
	w.buf = append(w.buf, '}')
	return nil
}

// content writes an asset or an archive. Two with one hash are equal wherever their content lies.
func (w *writer) content(kind, hash string, serialized map[string]any) error {
	w.differs = true
	if w.form == formCompared && hash != "" {
		w.signed(kind)
		w.key(',', "hash")
		w.text(hash)
		w.buf = append(w.buf, '}')
		return nil
	}
	b, err := json.Marshal(serialized)
	w.buf = append(w.buf, b...)
	return err
}

func (w *writer) reference(r resource.ResourceReference) error {
	w.differs = true
	m := resource.PropertyMap{
		sig.Key: resource.NewProperty(sig.ResourceReference),
		"urn":   resource.NewProperty(string(r.URN)),
	}
	if id, ok := r.IDString(); ok {
		m["id"] = resource.NewProperty(id)
	}
	if r.PackageVersion != "" || w.form != formPlain {
		m["packageVersion"] = resource.NewProperty(r.PackageVersion)
	}
	if w.form == formPlain && r.Name != "" {
		m["name"] = resource.NewProperty(r.Name)
	}
	if w.form == formPlain && r.Type != "" {
		m["type"] = resource.NewProperty(r.Type)
	}
	return w.object(m)
}

// signed opens an object with a signature. The signature's key sorts before every field that follows one.
func (w *writer) signed(signature string) {
	w.key('{', sig.Key)
	w.text(signature)
}

func (w *writer) number(f float64) {
	if !math.IsNaN(f) && !math.IsInf(f, 0) {
		b, _ := json.Marshal(f) // fails only for the two above
		w.buf = append(w.buf, b...)
		return
	}
	w.signed(floatSig)
	w.key(',', "value")
	w.text(fmt.Sprintf("%016x", math.Float64bits(f)))
	w.buf = append(w.buf, '}')
}

func (w *writer) string(s string) {
	if utf8.ValidString(s) {
		w.text(s)
		return
	}
	w.byteStrings = true
	w.signed(sig.ByteString)
	w.key(',', "value")
	w.text(base64.StdEncoding.EncodeToString([]byte(s)))
	w.buf = append(w.buf, '}')
}

// text writes a JSON string as encoding/json does.
func (w *writer) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b, _ := json.Marshal(s) // never fails for a string
			w.buf = append(w.buf, b...)
			return
		}
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '"')
}

// unknown gives the sentinel that stands for an unknown value of the type of element.
func unknown(element resource.PropertyValue) string {
	switch x := element.V.(type) {
	case bool:
		return sig.UnknownBoolValue
	case float64:
		return sig.UnknownNumberValue
	case []resource.PropertyValue:
		return sig.UnknownArrayValue
	case resource.PropertyMap:
		return sig.UnknownObjectValue
	case *asset.Asset:
		return sig.UnknownAssetValue
	case *archive.Archive:
		return sig.UnknownArchiveValue
	case resource.Computed:
		return unknown(x.Element)
	}
	return sig.UnknownStringValue
}
