//go:build tools

// Package snapshotbox pins the modules of which Kubernetes' snapshot controller and the snapshotter of CSI drivers are built, and those of their kinds.
// `go install` cannot: their own module replaces others.
package snapshotbox

import (
	_ "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter"
	_ "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller"
)
