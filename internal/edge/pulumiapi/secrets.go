package pulumiapi

import (
	"encoding/base64"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// seal encrypts values, which are arbitrary bytes. The service's ciphertexts are base64 of what the CLI gets: it adds
// the base64 itself.
func (c *call) seal(plain [][]byte) ([][]byte, error) {
	if err := deployments.ValidateValues(len(plain)); err != nil {
		return nil, err
	}
	texts := make([]string, len(plain))
	for i := range plain {
		texts[i] = string(plain[i])
	}
	sealed, err := c.edge.Service.Encrypt(c.Context(), c.stack, texts)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(sealed))
	for i := range sealed {
		if out[i], err = base64.StdEncoding.DecodeString(sealed[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// open decrypts what seal encrypted.
func (c *call) open(sealed [][]byte) ([][]byte, error) {
	if err := deployments.ValidateValues(len(sealed)); err != nil {
		return nil, err
	}
	texts := make([]string, len(sealed))
	for i := range sealed {
		texts[i] = base64.StdEncoding.EncodeToString(sealed[i])
	}
	plain, err := c.edge.Service.Decrypt(c.Context(), c.stack, texts)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(plain))
	for i := range plain {
		out[i] = []byte(plain[i])
	}
	return out, nil
}

// values returns the values that a member of the body has, unless there are too many: they are counted before memory is
// used for them.
func (c *call) values(member string) (values [][]byte, err error) {
	text, err := c.parseAround(&struct{}{}, member)
	if err != nil || text == nil {
		return nil, err
	}
	n := 0
	for range rawjson.Elements(text) {
		if n++; n > deployments.MaxValues {
			return nil, deployments.ValidateValues(n)
		}
	}
	return values, c.decode(text, &values)
}

func encrypt(c *call) (any, error) {
	var r apitype.EncryptValueRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	sealed, err := c.seal([][]byte{r.Plaintext})
	if err != nil {
		return nil, err
	}
	return apitype.EncryptValueResponse{Ciphertext: sealed[0]}, nil
}

func encryptAll(c *call) (any, error) {
	values, err := c.values("plaintexts")
	if err != nil {
		return nil, err
	}
	sealed, err := c.seal(values)
	return apitype.BatchEncryptResponse{Ciphertexts: sealed}, err
}

func decrypt(c *call) (any, error) {
	var r apitype.DecryptValueRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	plain, err := c.open([][]byte{r.Ciphertext})
	if err != nil {
		return nil, err
	}
	return apitype.DecryptValueResponse{Plaintext: plain[0]}, nil
}

func decryptAll(c *call) (any, error) {
	ciphertexts, err := c.values("ciphertexts")
	if err != nil {
		return nil, err
	}
	plain, err := c.open(ciphertexts)
	if err != nil {
		return nil, err
	}
	answer := apitype.BatchDecryptResponse{Plaintexts: make(map[string][]byte, len(plain))}
	for i, sealed := range ciphertexts {
		answer.Plaintexts[base64.StdEncoding.EncodeToString(sealed)] = plain[i]
	}
	return answer, nil
}
