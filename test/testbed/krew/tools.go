//go:build tools

// Package krew pins the modules of which krew is built. `go install` cannot: it asks for a list of versions, which no proxy has to serve.
package krew

import _ "sigs.k8s.io/krew/cmd/krew"
