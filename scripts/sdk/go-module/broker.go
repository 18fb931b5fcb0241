// Package isthmus is a client of the REST API of an Isthmus broker. All but this file is generated from its OpenAPI document.
package isthmus

import (
	"context"
	"net/http"
)

// New makes a client of the broker at url. key is an API key, or a token of an identity provider, beside which WithTenant names the tenant.
func New(url, key string, options ...ClientOption) (*ClientWithResponses, error) {
	return NewClientWithResponses(url, append([]ClientOption{withHeader("Authorization", "Bearer "+key)}, options...)...)
}

// WithTenant names the tenant that a token of an identity provider is for.
func WithTenant(tenant string) ClientOption {
	return withHeader("isthmus-tenant", tenant)
}

func withHeader(name, value string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set(name, value)
		return nil
	})
}
