//go:build tools

// Package snapshotbox pins the definitions of VolumeSnapshots and their kin; go.mod names what takes them as tools.
package snapshotbox

import _ "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
