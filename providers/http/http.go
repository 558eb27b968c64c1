// Package http provides deployctl:http:Resource, a resource of any REST API that speaks JSON, as a convergent resource.
//
// The program says by which requests the resource is created, read, updated, deleted and looked up. What is there is
// read first and compared with what is declared, so only a difference is sent. A create whose answer was lost is found
// again: by the name in its path, or by the lookup where the server assigns ids. A mark in a field of the resource says
// whose it is.
package http

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/provider"
)

// Config is where the API is and who calls.
type Config struct {
	Endpoint string            `pulumi:"httpEndpoint,optional" doc:"The base URL of the API, for resources without an endpoint of their own."`
	Headers  map[string]string `pulumi:"httpHeaders,optional,secret" doc:"Headers of all requests to this endpoint, such as Authorization."`
}

// Module is the http module. Configured headers go to the configured endpoint alone.
func Module() provider.Module {
	conn := &connection{}
	return provider.Module{
		Config:    provider.Configured(conn.open),
		Resources: []provider.Resource{provider.NewResource("deployctl:http:Resource", &Resource{conn})},
	}
}

// connection is what the last Configure has set.
type connection struct {
	mu     sync.Mutex
	opened *opened
}

type opened struct {
	client   *http.Client
	endpoint string
	headers  map[string]string
	redactor *redaction.Redactor // of the configured headers
}

const (
	requestTimeout = 5 * time.Minute
	maxRedirects   = 5
)

func (c *connection) open(_ context.Context, cfg Config) error {
	if cfg.Endpoint != "" {
		if reason := wrongEndpoint(cfg.Endpoint); reason != "" {
			return fmt.Errorf("httpEndpoint %s", reason)
		}
	}
	if reason := wrongHeaders(cfg.Headers); reason != "" {
		return fmt.Errorf("httpHeaders: %s", reason)
	}
	if cfg.Endpoint == "" && len(cfg.Headers) > 0 {
		return errors.New("httpHeaders are sent to httpEndpoint alone, which is not set")
	}
	client := &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			IdleConnTimeout: requestTimeout},
		CheckRedirect: sameServer,
		Timeout:       requestTimeout,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = &opened{client: client, endpoint: cfg.Endpoint, headers: cfg.Headers,
		redactor: redaction.New(headerSecrets(cfg.Headers))}
	return nil
}

// headerSecrets are the values of headers, and of each the last word: of "Bearer TOKEN" the token.
func headerSecrets(headers map[string]string) []string {
	var secrets []string
	for value := range maps.Values(headers) {
		secrets = append(secrets, value)
		if words := strings.Fields(value); len(words) > 1 {
			secrets = append(secrets, words[len(words)-1])
		}
	}
	return secrets
}

// sameServer follows a redirect of a request that changes nothing, to the same server, which gets the headers anyway.
func sameServer(next *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || len(via) > maxRedirects || !sameOrigin(next.URL, first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

func (c *connection) get() (*opened, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened == nil {
		return nil, errors.New("the provider is not configured yet")
	}
	return c.opened, nil
}
