//go:build tools

// Package sanity pins the modules of which the suite for CSI drivers is built.
package sanity

import _ "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity"
