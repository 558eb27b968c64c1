package harness

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// keyToken is the token of Vault that a KeyService accepts.
const keyToken = "a-token-of-vault"

// KeyService encrypts and decrypts as AWS KMS and Vault's transit engine do, over their protocols, with one key of its
// own, whatever key is named.
type KeyService struct {
	URL    string
	Denies atomic.Bool // every call is refused
	calls  atomic.Int64
	key    cipher.AEAD
}

// NewKeyService starts a key service, which ends with the test.
func NewKeyService(t *testing.T) *KeyService {
	t.Helper()
	key := make([]byte, 32)
	_, err := rand.Read(key)
	Must(t, err)
	block, err := aes.NewCipher(key)
	Must(t, err)
	k := &KeyService{}
	k.key, err = cipher.NewGCMWithRandomNonce(block)
	Must(t, err)
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	k.URL = server.URL
	return k
}

// Env leads a client to the service, with credentials.
func (k *KeyService) Env() []string {
	return []string{"VAULT_SERVER_URL=" + k.URL, "VAULT_SERVER_TOKEN=" + keyToken,
		"AWS_ENDPOINT_URL_KMS=" + k.URL, "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret"}
}

// Calls counts the calls so far.
func (k *KeyService) Calls() int64 { return k.calls.Load() }

// ServeHTTP implements http.Handler.
func (k *KeyService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.calls.Add(1)
	target, isAWS := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "TrentService.")
	switch {
	case isAWS && (k.Denies.Load() || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")):
		w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
		http.Error(w, `{"__type":"AccessDeniedException","message":"you may not use the key"}`, http.StatusBadRequest)
	case isAWS:
		k.aws(w, r, target)
	case k.Denies.Load() || r.Header.Get("X-Vault-Token") != keyToken:
		http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
	default:
		k.vault(w, r)
	}
}

// aws answers Encrypt and Decrypt of AWS KMS.
func (k *KeyService) aws(w http.ResponseWriter, r *http.Request, target string) {
	var in struct{ Plaintext, CiphertextBlob []byte }
	answer := map[string]any{"KeyId": "arn:aws:kms:eu-central-1:111122223333:key/1"}
	err := json.NewDecoder(r.Body).Decode(&in)
	if err == nil && target == "Encrypt" {
		answer["CiphertextBlob"] = k.key.Seal(nil, nil, in.Plaintext, nil)
	} else if err == nil {
		answer["Plaintext"], err = k.key.Open(nil, nil, in.CiphertextBlob, nil)
	}
	if err != nil {
		w.Header().Set("X-Amzn-Errortype", "InvalidCiphertextException")
		http.Error(w, `{"__type":"InvalidCiphertextException"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(answer)
}

// vaultPrefix begins the ciphertexts of the transit engine.
const vaultPrefix = "vault:v1:"

// vault answers encrypt and decrypt of the transit engine.
func (k *KeyService) vault(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Plaintext  []byte
		Ciphertext string
	}
	answer := map[string]any{}
	err := json.NewDecoder(r.Body).Decode(&in)
	if err == nil && strings.HasPrefix(r.URL.Path, "/v1/transit/encrypt/") {
		sealed := k.key.Seal(nil, nil, in.Plaintext, nil)
		answer["ciphertext"] = vaultPrefix + base64.StdEncoding.EncodeToString(sealed)
	} else if err == nil {
		var sealed []byte
		if sealed, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(in.Ciphertext, vaultPrefix)); err == nil {
			answer["plaintext"], err = k.key.Open(nil, nil, sealed, nil)
		}
	}
	if err != nil {
		http.Error(w, `{"errors":["invalid ciphertext"]}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": answer})
}
