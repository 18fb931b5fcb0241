//go:build tools

// Package snapshotbox pins the module that has the definitions of VolumeSnapshots and their kin.
package snapshotbox

import _ "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
